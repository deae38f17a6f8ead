// A table of any length: only the rows that are seen are there.
//
// The scroll bar stands for the ids (or for the ranks in an index): the first row that is seen is the first one from
// there on. So a jump to any place costs one page, whatever the table's length.

import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/preact.js';
import { erasures } from './erased.js';
import { writeLink } from './state.js';
import { Cell, WAS, cut, isNumeric, textOf, typeOf, wasText, widen, widthFor, widthOf } from './cells.js';

const HEIGHT = 28;
/** Browsers don't make boxes of any height. */
const TALLEST = 8_000_000;
const ID_WIDTH = 90;
/** The heading has the names and the types of the fields. */
const HEAD = 44;

/** So many characters of a value are in a tip. */
const LONG = 300;

const idField = { key: 'id', type: 'id' };

function columns(table) {
  return [idField, ...table.fields];
}

export function Grid({ model, table, rows, start, total, from, onPlace, zone }) {
  const box = useRef(null);
  const [seen, see] = useState({ top: 0, height: 600 });
  const [selected, select] = useState(0);
  const tall = Math.min(total * HEIGHT, TALLEST) || HEIGHT;
  // The last place of the scroll bar is where the last row is seen, below the heading.
  const view = seen.height - HEAD;
  const perRow = total * HEIGHT > Math.max(tall, view) ? (tall - view) / (total - view / HEIGHT) : HEIGHT;
  const widths = table.fields.map((field) => widthOf(table.name, field));
  const template = `${ID_WIDTH}px ${widths.map((width) => `${width}px`).join(' ')}`;
  const width = ID_WIDTH + widths.reduce((sum, one) => sum + one, 0);
  const touched = model.touched();
  const { link } = model;

  useLayoutEffect(() => {
    // On paper the table is as high as its rows.
    const resized = new ResizeObserver(() => matchMedia('print').matches
      || see((it) => ({ ...it, height: box.current?.clientHeight ?? it.height })));
    resized.observe(box.current);
    return () => resized.disconnect();
  }, []);
  // A link to a place scrolls there.
  useLayoutEffect(() => {
    const wanted = Math.max(0, from - start) * perRow;
    if (Math.abs(box.current.scrollTop - wanted) > HEIGHT) box.current.scrollTop = wanted;
  }, [table.name, link.order, perRow]);

  const first = start + Math.min(Math.floor(seen.top / perRow), Math.max(total - 1, 0));
  const count = Math.ceil(seen.height / HEIGHT) + 1;
  useEffect(() => onPlace(first), [first]);

  const shown = model.isPrinting ? rows.rows : rows.order == null
    ? rows.rows.filter((row) => row.id >= first).slice(0, count)
    : rows.rows.slice(Math.max(0, first - rows.from), Math.max(0, first - rows.from) + count);
  // Back from a row, that one is chosen.
  useLayoutEffect(() => {
    const place = shown.findIndex((row) => row.id === model.lastRow);
    if (place >= 0) select(place);
  }, []);
  const removed = link.only ? [] : [...touched].filter(([, it]) => it.kind === 'delete').map(([id]) => id);

  const key = (event) => {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: count - 2, PageUp: 2 - count };
    if (event.key in moves) {
      const place = selected + moves[event.key];
      if (place < 0 || place >= count - 2) box.current.scrollTop += moves[event.key] * perRow;
      select(Math.max(0, Math.min(place, count - 3)));
    } else if (event.key === 'Home') {
      box.current.scrollTop = 0;
      select(0);
    } else if (event.key === 'End') {
      box.current.scrollTop = tall;
    } else if (event.key === 'Enter' && shown[selected]) {
      model.want({ view: 'row', id: shown[selected].id });
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return html`
    <div class="grid" ref=${box} role="grid" tabindex="0" aria-label=${`rows of ${table.name}`}
         aria-rowcount=${total} onKeyDown=${key}
         onScroll=${() => see({ top: box.current.scrollTop, height: box.current.clientHeight })}>
      <div class="head" role="row" style=${{ gridTemplateColumns: template, width }}>
        ${columns(table).map((field) => html`
          <div key=${field.key} role="columnheader" title=${titleOf(field)} class=${isNumeric(field) ? 'number' : ''}>
            <${Head} model=${model} table=${table} field=${field} />
            ${field.key !== 'id' && html`<small>${typeOf(field)}</small>
            <${Edge} model=${model} table=${table} field=${field} rows=${shown} />`}</div>`)}
      </div>
      <div class="space" role="rowgroup" style=${{ height: tall, width }}>
        ${shown.map((row, place) => html`
          <${Row} key=${row.id} model=${model} row=${row} table=${table} template=${template} width=${width} zone=${zone}
            top=${seen.top - (seen.top % Math.min(perRow, HEIGHT)) + place * HEIGHT} change=${touched.get(row.id)}
            isSelected=${place === selected} />`)}
      </div>
      ${shown.length === 0 && html`<p class="none">${nothing(model)}</p>`}
    </div>
    ${removed.length > 0 && html`<p class="removed">${removed.length === 1
      ? '1 row of this table was deleted: ' : `${removed.length} rows of this table were deleted: `}
      ${removed.slice(0, 10).map((id) => html`<a href=${writeLink({ ...link, view: 'row', id, at: model.pinned?.from ?? model.txid - 1 })}>${id}</a>${' '}`)}${removed.length > 10 && 'and more'}</p>`}`;
}

/** The right edge of a heading, which makes its column wider. */
function Edge({ model, table, field, rows }) {
  const width = widthOf(table.name, field);
  const set = (wide) => {
    widen(table.name, field, wide);
    model.tell();
  };
  const fit = () => set(widthFor(rows.map((row) => textOf(field, row[field.key], model.link.zone)).concat(field.key)));
  const drag = (event) => {
    const begin = event.clientX;
    const edge = event.target;
    edge.setPointerCapture(event.pointerId);
    edge.onpointermove = (moved) => set(width + moved.clientX - begin);
    edge.onpointerup = () => { edge.onpointermove = null; };
  };
  const key = (event) => {
    const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
    if (by) set(width + by);
    else if (event.key === 'Enter') fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<i class="edge" role="separator" tabindex="0" aria-orientation="vertical" aria-label=${`width of ${field.key}`} aria-valuenow=${width}
    title="drag to make the column wider; double click or Enter: as wide as its values" onPointerDown=${drag} onDblClick=${fit} onKeyDown=${key}></i>`;
}

const titleOf = (field) => (field.key === 'id' ? 'id' : `${field.key}: ${typeOf(field)}`);

/** Says why there are no rows. */
function nothing(model) {
  const { link } = model;
  if (link.only) return model.pinned ? 'No row of this table differs from the pinned moment.' : 'This transaction changed no row of this table.';
  if (link.filter) return html`No row that was searched has “${link.filter}” in a value. <a href=${writeLink({ ...link, view: 'search', text: link.filter, deleted: true })}>Search deleted rows, too</a>`;
  return link.from ? 'There are no rows from here on.' : 'The table has no rows at this moment.';
}

function Head({ model, table, field }) {
  const index = table.indexes.find((it) => it.fields[0] === field.key);
  const isOrder = model.link.order ? index?.name === model.link.order : field.key === 'id';
  const mark = isOrder ? (index?.descending.includes(field.key) ? ' ↓' : ' ↑') : '';
  if (!index && field.key !== 'id') return html`<span>${field.key}</span>`;
  const order = field.key === 'id' ? null : index.name;
  return html`<button class="order" aria-pressed=${isOrder} title=${`${titleOf(field)} · sort by ${order ?? 'id'}`}
    onClick=${() => model.want({ order, from: 0 })}>${field.key}${mark}</button>`;
}

/** Where the mouse was pressed: if it moved so many pixels since, it selects a text. */
let pressed = null;
const STILL = 4;

/** Opens the row that was clicked, unless the click was on a link, or ended the selection of a text. */
function clicked(event, model, row) {
  const moved = pressed ? Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) : 0;
  pressed = null;
  const isOther = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (isOther || moved > STILL || event.target.closest('a, button, summary')) return;
  model.want({ view: 'row', id: row.id });
}

function Row({ model, row, table, template, width, zone, top, change, isSelected }) {
  const { link } = model;
  const kind = change ? ` ${change.kind}` : '';
  const isChanged = (field) => change?.kind === 'update' && change.fields.has(field.key);
  const before = model.pinned?.from ?? model.txid - 1;
  // A deleted row is shown as it was.
  const [erasure, erasureBefore] = [change?.kind === 'delete' ? before : model.txid, before].map((it) => erasures(model, table, row.id, it));
  return html`
    <div class=${`row${kind}${isSelected ? ' selected' : ''}`} role="row" data-row=${row.id} onMouseDown=${(event) => { pressed = event; }} onClick=${(event) => clicked(event, model, row)}
         style=${{ gridTemplateColumns: template, width, transform: `translateY(${top}px)` }}>
      ${columns(table).map((field) => html`
        <${GridCell} key=${field.key} field=${field} value=${row[field.key]} was=${isChanged(field) ? change.before[field.key] ?? null : undefined} zone=${zone}
          erasure=${erasure(field)} erasureBefore=${erasureBefore(field)}>
          ${field.key === 'id'
            ? html`<a href=${writeLink({ ...link, view: 'row', id: row.id })}>${row.id}</a>`
            : html`<${Cell} field=${field} value=${row[field.key]} link=${link} zone=${zone} erasure=${erasure(field)} />`}
        <//>`)}
    </div>`;
}

/** A cell; of a changed one also the value that it had. */
function GridCell({ field, value, was, zone, erasure, erasureBefore, children }) {
  const isChanged = was !== undefined;
  const [text, before] = [[value, erasure], [was, erasureBefore]].map(([it, mark]) => wasText(field, it, zone, mark));
  return html`<div role="gridcell" data-field=${field.key} class=${`${isNumeric(field) ? 'number' : ''}${isChanged ? ' changed' : ''}`}
    data-was=${isChanged ? cut(before, WAS) : null} title=${isChanged ? `${cut(text, LONG)}\nwas ${cut(before, LONG)}` : null}>${children}</div>`;
}
