// The transactions before the moment, each with its changes.

import { html, useLayoutEffect, useState } from './vendor/preact.js';
import { get, lines, tablePath } from './net.js';
import { MOST_TABLES } from './model.js';
import { asking } from './ready.js';
import { writeLink } from './state.js';
import { number, plural, showTime } from './moment.js';
import { cut, wasText } from './cells.js';
import { Erased, erasures } from './erased.js';

const PAGE = 50;
/** So many changes of a transaction are shown. */
const CHANGES = 20;
/** Of a table that changes rarely an answer has few transactions: so many are asked for, one after the other. */
const ANSWERS = 20;

/** Returns a page of transactions, the newest first, up to one; and where to continue. */
async function page({ of, first, upto }, signal) {
  if (upto < first) return { transactions: [], next: null };
  if (of) return get(`${tablePath(of)}/log`, { upto, after: first - 1, limit: PAGE, rows: CHANGES }, signal);
  const after = Math.max(first - 1, upto - PAGE);
  const found = await lines('/log', { after, limit: upto - after, rows: CHANGES, fields: 'changed' }, signal);
  return { transactions: found.toReversed(), next: after >= first ? after : null };
}

export function LogView({ model, zone }) {
  const { of, pin } = model.link;
  const [{ list, next }, set] = useState({ list: null, next: null });
  const here = model.txid ?? 0;
  // While moments are compared, the transactions between them.
  const [first, end] = pin == null ? [model.first, here] : [Math.min(pin, here) + 1, Math.max(pin, here)];
  const ask = async (upto, before, signal) => {
    let [place, all] = [upto, before];
    for (let turn = 0; turn < ANSWERS && place != null && all.length < before.length + PAGE; turn += 1) {
      const answer = await page({ of, first, upto: place }, signal);
      if (signal?.aborted) return;
      [place, all] = [answer.next, [...all, ...answer.transactions]];
      set({ list: all, next: place });
    }
  };
  useLayoutEffect(() => asking('log', (signal) => ask(end, [], signal), (error) => model.lose(error)), [of, first, end]);
  const tables = model.catalog.tables.slice(0, MOST_TABLES).map((it) => it.name);
  return html`
    <article class="log"><h2>Log</h2>
      <p>What each transaction changed, the newest first, ${pin == null ? 'up to the moment of the slider' : 'between the two moments that are compared'}. A struck-out value was there before.</p>
      <p><label>changes of <select aria-label="changes of" value=${of} onChange=${(event) => model.want({ of: event.target.value })}>
        <option value="">all tables</option>${[...new Set([...tables, of])].filter(Boolean).map((it) => html`<option value=${it}>${it}</option>`)}</select></label>${' '}
        ${pin == null && 'For a range of time: compare from its beginning, and go to its end.'}</p>
      ${list?.map((it) => html`<section key=${it.txid} data-transaction=${it.txid} class=${it.txid === model.txid ? 'shown' : ''}>
        <h3><a href=${writeLink({ ...model.link, at: it.txid })}>transaction ${number(it.txid)}</a>
          <small> ${showTime(it.time, zone)} · ${plural(it.changes.length + (it.left_out ?? 0), 'change')}${of && ` of ${of}`}</small>${it.comment && html` <q>${it.comment}</q>`}</h3>
        <ul>${it.changes.map((change) => html`<li><${Change} model=${model} change=${change} at=${it.txid} zone=${zone} /></li>`)}</ul>
        ${it.left_out > 0 && html`<p>and ${number(it.left_out)} more changes</p>`}
      </section>`)}
      ${!list ? null : next == null ? html`<p>${list.length ? 'There are no earlier ones' : 'There is no transaction'}${pin == null ? '' : ' between these moments'}${of && `, of ${of}`}.</p>`
        : html`<p>Searched down to transaction ${number(next + 1)}. <button data-do="earlier" onClick=${() => ask(next, list).catch((error) => model.fail(error))}>earlier ones</button></p>`}
    </article>`;
}

function Change({ model, change, at, zone }) {
  const { table, id, before, after } = change;
  const kind = before ? (after ? 'update' : 'delete') : 'insert';
  // Changes have the names of now.
  const now = model.catalog.byName.get(table);
  const [erasureBefore, erasure] = [at - 1, at].map((txid) => erasures(model, now, id, txid));
  const fieldOf = (key) => now?.fields.find((it) => it.key === key || it.key === `${table}.${key}`) ?? { key, type: 'string' };
  const [only, erasureOfOnly] = after ? [after, erasure] : [before, erasureBefore];
  const isEmpty = (key) => only[key] === '' || (only[key] == null && !erasureOfOnly(fieldOf(key)));
  const differs = (key) => (before && after ? JSON.stringify(before[key]) !== JSON.stringify(after[key]) : !isEmpty(key));
  const side = (value, field, mark) => (value == null && mark
    ? html`<${Erased} mark=${mark} link=${model.link} zone=${zone} />` : cut(wasText(field, value, zone), 100));
  const shown = (key) => {
    const field = fieldOf(key);
    return html`${before && after && html`<del>${side(before[key], field, erasureBefore(field))}</del> `}${side(only[key], field, erasureOfOnly(field))}`;
  };
  const link = writeLink({ ...model.link, view: 'row', table, id, at: kind === 'delete' ? at - 1 : at });
  return html`<span><span class=${`kind ${kind}`}>${kind}</span> <a href=${link}>${table} ${id}</a>${Object.keys(after ?? before).filter(differs).map((key) => html`
    <span class="field"> ${key}: ${shown(key)}</span>`)}</span>`;
}
