// Values as people read them, by their types.

import { html, useState } from './vendor/preact.js';
import { writeLink } from './state.js';
import { showTime } from './moment.js';
import { BlobValue, Bytes, ShortBytes } from './bytes.js';

/** So many characters of a value are shown before it is asked for all of it. */
const SHORT = 300;

/** So many characters of a value that was there before are shown beside the one after. */
export const WAS = 100;

export const kindOf = (field) => field.type.split('(')[0];
export const isNumeric = (field) => /^(u?int|float|decimal)/.test(kindOf(field));

/** The text below the name of a column: its type. */
export const typeOf = (field) => `${field.references ? `→ ${field.references}` : field.type}${field.is_nullable ? ' null' : ''}`;

const [PADDING, ARROW, WIDEST] = [22, 16, 320];
const pen = document.createElement('canvas').getContext('2d');
const widths = new Map();

/** The width of a column: room for usual values, for its name with the arrow of an order, and for its type. */
export function widthOf(field) {
  const texts = `${field.key}\n${typeOf(field)}`;
  if (!widths.has(texts)) {
    const { fontFamily } = getComputedStyle(document.body);
    const wide = (font, text) => {
      pen.font = `${font} ${fontFamily}`;
      return Math.ceil(pen.measureText(text).width) + PADDING;
    };
    widths.set(texts, Math.max(wide('600 13px', field.key) + ARROW, wide('11px', typeOf(field))));
  }
  return Math.min(Math.max(usualWidth(field), widths.get(texts)), WIDEST);
}

function usualWidth(field) {
  const kind = kindOf(field);
  if (kind === 'bool') return 70;
  if (isNumeric(field) || kind === 'references') return 100;
  if (kind === 'timestamp') return 190;
  if (kind === 'uuid') return 310;
  if (kind === 'date' || kind === 'enum') return 120;
  return 160;
}

/** The text of a value, for people; without a zone as the server writes it, for copies. */
export function textOf(field, value, zone) {
  if (value == null) return '';
  if (zone && typeof value === 'boolean') return value ? 'yes' : 'no';
  if (zone && kindOf(field) === 'timestamp') return showTime(value, zone, true);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** A value in a cell of a table: one line. */
export function Cell({ field, value, link, zone }) {
  if (value == null) return html`<span class="null">null</span>`;
  if (field.references) {
    const to = writeLink({ ...link, view: 'row', table: field.references, id: value });
    return html`<a href=${to} title=${`${field.references} ${value}`}>${value} →</a>`;
  }
  if (kindOf(field) === 'bool') return html`<span class=${value ? 'yes' : 'no'}>${textOf(field, value, zone)}</span>`;
  if (kindOf(field) === 'enum') return html`<span class="variant">${value}</span>`;
  if (kindOf(field) === 'bytes') return html`<${ShortBytes} text=${value} />`;
  const text = textOf(field, value, zone);
  return html`<span title=${text.slice(0, SHORT)}>${text.slice(0, SHORT)}</span>`;
}

/** A value with room around it: all of it. `origin` says of which row it is, and when. */
export function Value({ field, value, link, zone, origin }) {
  const [isLong, expand] = useState(false);
  const kind = kindOf(field);
  if (value != null && kind === 'json') {
    let pretty = value;
    try { pretty = JSON.stringify(JSON.parse(value), null, 2); } catch { /* as it is */ }
    return html`<details open=${pretty.length < 400}><summary>json</summary><pre>${pretty}</pre></details>`;
  }
  if (value != null && kind === 'bytes') return html`<${Bytes} text=${value} />`;
  if (value != null && kind === 'blob') return html`<${BlobValue} value=${value} field=${field} origin=${origin} />`;
  if (typeof value === 'string' && value.length > SHORT) {
    return html`<span class="text">${isLong ? value : `${value.slice(0, SHORT)}…`}
      <button onClick=${() => expand(!isLong)}>${isLong ? 'less' : `all ${value.length} characters`}</button></span>`;
  }
  return html`<${Cell} field=${field} value=${value} link=${link} zone=${zone} />`;
}
