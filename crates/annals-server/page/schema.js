// The schema as a diagram, and its own history.

import { html, useState } from './vendor/preact.js';
import { writeLink } from './state.js';
import { number } from './moment.js';
import { colourOf } from './plot.js';

/** So many tables are drawn. */
const MOST = 60;
const [WIDE, LINE, GAP] = [230, 17, 40];
/** So many fields of a table are drawn. */
const FIELDS = 14;

const heightOf = (table) => 30 + Math.min(table.fields.length, FIELDS + 1) * LINE;

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

export function SchemaView({ model }) {
  const [text, setText] = useState('');
  const all = model.catalog.tables.filter((table) => table.name.toLowerCase().includes(text.toLowerCase()));
  const drawn = all.slice(0, MOST);
  const places = place(drawn, Math.max(1, Math.floor(Math.min(innerWidth - 320, 1400) / (WIDE + GAP))));
  const bottom = Math.max(0, ...[...places.values()].map((it) => it.y + heightOf(it.table)));
  const right = Math.max(0, ...[...places.values()].map((it) => it.x + WIDE));
  const arrows = drawn.flatMap((table) => table.fields.flatMap((field, line) => {
    const [from, to] = [places.get(table.name), places.get(field.references)];
    if (!field.references || !to || line >= FIELDS) return [];
    const y = from.y + 30 + line * LINE + 8;
    const [x1, x2] = to.x > from.x ? [from.x + WIDE, to.x] : [from.x, to.x + (to.x === from.x ? 0 : WIDE)];
    const bend = to.x > from.x ? 20 : -20;
    return [html`<path class="arrow" d=${`M${x1},${y} C${x1 + bend},${y} ${x2 - (to.x === from.x ? 20 : bend)},${to.y + 14} ${x2},${to.y + 14}`} />`];
  }));
  const history = (model.activity?.marks ?? []).filter((mark) => mark.kind === 'schema');
  return html`
    <article class="schema">
      <h2>Schema</h2>
      <label>only tables with <input placeholder="part of a name" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      ${all.length > MOST && html` <span>the first ${MOST} of ${number(all.length)}</span>`}
      <div class="diagram"><svg width=${right + 4} height=${bottom + 4} role="group" aria-label="tables and their references">
        <defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" /></marker></defs>
        ${arrows}
        ${[...places.values()].map(({ x, y, table }) => html`<g key=${table.name} transform=${`translate(${x + 2},${y + 2})`}>
          <rect width=${WIDE} height=${heightOf(table)} rx="4" />
          <a href=${writeLink({ ...model.link, view: 'table', table: table.name, from: 0, order: null, filter: '' })}>
            <rect class="colour" x="8" y="9" width="10" height="10" style=${{ fill: colourOf(model, table.name) }} /><text class="name" x="24" y="19">${table.name}</text></a>
          ${table.fields.slice(0, FIELDS).map((field, line) => html`<text x="8" y=${42 + line * LINE}>${field.key}
            <tspan class="type">  ${field.references ? `→ ${field.references}` : field.type.slice(0, 24)}${field.is_nullable ? ' null' : ''}</tspan></text>`)}
          ${table.fields.length > FIELDS && html`<text x="8" y=${42 + FIELDS * LINE}>and ${table.fields.length - FIELDS} more</text>`}
        </g>`)}
      </svg></div>
      ${model.txid < model.last && html`<p>The diagram is the schema of now: all of the past is seen through it.</p>`}
      <h3>Its history</h3>
      <ol class="history">${byTransaction(history.slice(-500)).map(([txid, texts]) => html`<li key=${txid}>
        <a href=${writeLink({ ...model.link, view: 'schema', at: txid })}>transaction ${number(txid)}</a>
        <ul>${texts.map((text) => html`<li><code>${text}</code></li>`)}</ul></li>`)}</ol>
    </article>`;
}
