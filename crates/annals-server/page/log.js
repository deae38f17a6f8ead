// The transactions before the moment, each with its changes.

import { html, useLayoutEffect, useState } from './vendor/preact.js';
import { lines } from './net.js';
import { asking } from './ready.js';
import { writeLink } from './state.js';
import { number, showTime } from './moment.js';
import { textOf } from './cells.js';

const PAGE = 50;
/** So many changes of a transaction are shown. */
const CHANGES = 20;

export function LogView({ model, zone }) {
  const [list, setList] = useState(null);
  const end = model.txid ?? 0;
  useLayoutEffect(() => {
    const after = Math.max(model.first - 1, end - PAGE);
    const asked = { after, limit: Math.max(1, end - after), rows: CHANGES, fields: 'changed' };
    return asking('log', async (signal) => setList(await lines('/log', asked, signal)), (error) => model.fail(error));
  }, [end, model.first]);
  return html`
    <article class="log"><h2>Log</h2>
      <p>What each transaction changed, the newest first, up to the moment of the slider. A struck-out value was there before.</p>
      ${list?.toReversed().map((it) => html`<section key=${it.txid} data-transaction=${it.txid} class=${it.txid === model.txid ? 'shown' : ''}>
        <h3><a href=${writeLink({ ...model.link, at: it.txid })}>transaction ${number(it.txid)}</a>
          <small> ${showTime(it.time, zone)} · ${number(it.changes.length + (it.left_out ?? 0))} changes</small>${it.comment && html` <q>${it.comment}</q>`}</h3>
        <ul>${it.changes.map((change) => html`<li><${Change} model=${model} change=${change} at=${it.txid} zone=${zone} /></li>`)}</ul>
        ${it.left_out > 0 && html`<p>and ${number(it.left_out)} more changes</p>`}
      </section>`)}
      ${end - PAGE >= model.first && html`<p><a href=${writeLink({ ...model.link, at: end - PAGE })}>${PAGE} earlier transactions</a></p>`}
    </article>`;
}

function Change({ model, change, at, zone }) {
  const { table, id, before, after } = change;
  const kind = before ? (after ? 'update' : 'delete') : 'insert';
  const fields = model.table(table)?.fields ?? [];
  const isEmpty = (value) => value == null || value === '';
  const differs = (key) => (before && after
    ? JSON.stringify(before[key]) !== JSON.stringify(after[key]) : !isEmpty((after ?? before)[key]));
  const side = (values, key) => {
    const field = fields.find((it) => it.key === key || it.key === `${table}.${key}`) ?? { key, type: 'string' };
    return values[key] == null ? 'null' : textOf(field, values[key], zone).slice(0, 100);
  };
  const link = writeLink({ ...model.link, view: 'row', table, id, at: kind === 'delete' ? at - 1 : at });
  return html`<span><span class=${`kind ${kind}`}>${kind}</span> <a href=${link}>${table} ${id}</a>${Object.keys(after ?? before).filter(differs).map((key) => html`
    <span class="field"> ${key}: ${before && after && html`<del>${side(before, key)}</del> `}${side(after ?? before, key)}</span>`)}</span>`;
}
