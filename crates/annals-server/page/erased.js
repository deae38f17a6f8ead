// Values that were erased: null stands in their place, and the page says so.

import { html } from './vendor/preact.js';
import { writeLink } from './state.js';
import { number, showTime } from './moment.js';

/** The marks of the erasures of each row, by table and id, in the order in which they were made. */
const known = new WeakMap();

function marksOf({ activity }, table, id) {
  if (!activity) return [];
  if (!known.has(activity)) {
    const rows = new Map();
    for (const mark of activity.marks.filter((it) => it.erased)) {
      const row = `${mark.erased.table}/${mark.erased.id}`;
      rows.set(row, [...(rows.get(row) ?? []), mark]);
    }
    known.set(activity, rows);
  }
  return known.get(activity).get(`${table.number}/${id}`) ?? [];
}

/** Returns who says of a field of a row whether null, after a transaction, is an erased value: by the mark of its erasure, or by
 *  one without a transaction if that is all that is known. The first erasure after a value was set took it. */
export function erasures(model, table, id, txid) {
  const marks = table ? marksOf(model, table, id) : [];
  const isOf = (field) => (it) => it.field == null || it.field === field.number;
  return (field) => marks.find((mark) => isOf(field)(mark.erased)
    && (txid < mark.txid || !mark.erased.set.some((it) => isOf(field)(it) && it.txid <= txid)))
    // Nobody can store null there.
    ?? (field.is_nullable === false ? {} : null);
}

/** What stands for an erased value. */
export function Erased({ mark, link, zone }) {
  if (mark.txid == null) return html`<span class="mark erasure" title="its value was removed from all history">erased</span>`;
  const when = `its value was removed from all history on ${showTime(mark.time, zone)}, by transaction ${number(mark.txid)}`;
  return html`<a class="mark erasure" href=${writeLink({ ...link, at: mark.txid })} title=${when}>erased</a>`;
}
