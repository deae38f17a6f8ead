// The schema at the moment as a diagram, what differs from now, and its history.

import { html, useLayoutEffect, useState } from './vendor/preact.js';
import { get } from './net.js';
import { asking } from './ready.js';
import { writeLink } from './state.js';
import { number } from './moment.js';
import { colourOf } from './plot.js';

/** So many tables are drawn. */
const MOST = 60;
const [WIDE, LINE, GAP] = [230, 17, 40];
/** So many fields of a table are drawn. */
const FIELDS = 14;
/** So many tables that were added since are named. */
const NAMED = 20;

const heightOf = ({ lines }) => 30 + Math.min(lines.length, FIELDS + 1) * LINE;

/** Places tables in columns, each under the shortest. */
function place(tables, columns) {
  const heights = Array(columns).fill(0);
  return new Map(tables.map((table) => {
    const column = heights.indexOf(Math.min(...heights));
    const at = { x: column * (WIDE + GAP), y: heights[column] };
    heights[column] += heightOf(table) + GAP;
    return [table.name, { ...at, table }];
  }));
}

/** Groups marks by their transactions, the newest first. */
function byTransaction(marks) {
  const groups = new Map();
  for (const { txid, text } of marks) groups.set(txid, [...(groups.get(txid) ?? []), text]);
  return [...groups].reverse();
}

/** The tables of the moment in the past; null if it is now, or they aren't known yet. */
function useThen(model, isPast) {
  const [then, setThen] = useState(null);
  const { txid } = model;
  useLayoutEffect(() => {
    if (!isPast) return undefined;
    return asking('schema', async (signal) => setThen((await get(`/schema/${txid}`, {}, signal)).tables), (error) => model.lose(error));
  }, [txid, isPast]);
  return isPast ? then : null;
}

const typeOf = (field) => `${field.references ? `→ ${field.references}` : field.type.slice(0, 24)}${field.is_nullable ? ' null' : ''}`;

/** Returns a table with its lines: its fields, with what became of them, and those that were added since. */
function compared(then, now) {
  const own = new Map((now?.fields ?? []).map((field) => [field.number, field]));
  const lines = then.fields.map((field) => {
    const today = own.get(field.number);
    own.delete(field.number);
    if (now && !today) return { field, kind: 'gone', note: 'dropped since' };
    if (today && today.key !== field.key) return { field, kind: 'other', note: `now ${today.key}` };
    if (today && (today.type !== field.type || today.is_nullable !== field.is_nullable)) return { field, kind: 'other', note: `now ${today.type}${today.is_nullable ? ' null' : ''}` };
    return { field, kind: '', note: '' };
  });
  const added = [...own.values()].map((field) => ({ field, kind: 'new', note: 'added since' }));
  const note = !now ? 'dropped since' : now.name !== then.name ? `now ${now.name}` : '';
  return { name: then.name, now, note, lines: [...lines, ...added] };
}

export function SchemaView({ model }) {
  const [text, setText] = useState('');
  const isPast = model.txid != null && model.txid < model.last;
  const then = useThen(model, isPast);
  const today = model.catalog.tables;
  const byNumber = new Map(today.map((table) => [table.number, table]));
  const tables = (isPast ? then ?? [] : today).map((table) => compared(table, byNumber.get(table.number)));
  const all = tables.filter((table) => table.name.toLowerCase().includes(text.toLowerCase()));
  const drawn = all.slice(0, MOST);
  const known = new Set((then ?? today).map((table) => table.number));
  const added = today.filter((table) => !known.has(table.number));
  const history = (model.activity?.marks ?? []).filter((mark) => mark.kind === 'schema');
  return html`
    <article class="schema">
      <h2>Schema${isPast && ` after transaction ${number(model.txid)}`}</h2>
      <label>only tables with <input placeholder="part of a name" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      ${all.length > MOST && html` <span>the first ${MOST} of ${number(all.length)}</span>`}
      ${isPast && then?.length === 0 && html`<p class="none">There were no tables yet.</p>`}
      <${Diagram} model=${model} drawn=${drawn} />
      ${added.length > 0 && html`<p data-added>Tables that were added since: ${added.slice(0, NAMED).map((table) => table.name).join(', ')}${added.length > NAMED && ` and ${number(added.length - NAMED)} more`}.</p>`}
      ${isPast && html`<p>Pages of rows show the past through the schema of now: fields that were added since have their default there.
        With <b>schema of that time</b>, beside the tables, they have the fields that were there.</p>`}
      <h3>Its history</h3>
      <ol class="history">${byTransaction(history.slice(-500)).map(([txid, texts]) => html`<li key=${txid}>
        <a href=${writeLink({ ...model.link, view: 'schema', at: txid })}>transaction ${number(txid)}</a>
        <ul>${texts.map((it) => html`<li><code>${it}</code></li>`)}</ul></li>`)}</ol>
    </article>`;
}

function Diagram({ model, drawn }) {
  const places = place(drawn, Math.max(1, Math.floor(Math.min(innerWidth - 320, 1400) / (WIDE + GAP))));
  const bottom = Math.max(0, ...[...places.values()].map((it) => it.y + heightOf(it.table)));
  const right = Math.max(0, ...[...places.values()].map((it) => it.x + WIDE));
  const arrows = drawn.flatMap((table) => table.lines.flatMap(({ field, kind }, line) => {
    const [from, to] = [places.get(table.name), places.get(field.references)];
    if (!field.references || kind === 'new' || !to || line >= FIELDS) return [];
    const y = from.y + 30 + line * LINE + 8;
    const [x1, x2] = to.x > from.x ? [from.x + WIDE, to.x] : [from.x, to.x + (to.x === from.x ? 0 : WIDE)];
    const bend = to.x > from.x ? 20 : -20;
    return [html`<path class="arrow" d=${`M${x1},${y} C${x1 + bend},${y} ${x2 - (to.x === from.x ? 20 : bend)},${to.y + 14} ${x2},${to.y + 14}`} />`];
  }));
  return html`<div class="diagram"><svg width=${right + 4} height=${bottom + 4} role="group" aria-label="tables and their references">
    <defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" /></marker></defs>
    ${arrows}
    ${[...places.values()].map(({ x, y, table }) => html`<g key=${table.name} data-shape=${table.name} transform=${`translate(${x + 2},${y + 2})`}>
      <rect width=${WIDE} height=${heightOf(table)} rx="4" />
      <${Name} model=${model} table=${table} />
      ${table.lines.slice(0, FIELDS).map(({ field, kind, note }, line) => html`<text x="8" y=${42 + line * LINE} class=${kind}>${kind === 'new' && '+ '}${field.key}
        <tspan class="type">  ${note || typeOf(field)}</tspan></text>`)}
      ${table.lines.length > FIELDS && html`<text x="8" y=${42 + FIELDS * LINE}>and ${table.lines.length - FIELDS} more</text>`}
    </g>`)}
  </svg></div>`;
}

/** The name of a table, which leads to its rows unless it was dropped. */
function Name({ model, table: { name, now, note } }) {
  const colour = colourOf(model, now?.name);
  const text = html`<rect class="colour" x="8" y="9" width="10" height="10" style=${{ fill: colour }} /><text class=${`name ${now ? '' : 'gone'}`} x="24" y="19">${name}${note && html`<tspan class="type">  ${note}</tspan>`}</text>`;
  return now ? html`<a href=${writeLink({ ...model.link, view: 'table', table: now.name, from: 0, order: null, filter: '' })}>${text}</a>` : html`<g>${text}</g>`;
}
