// Values as people read them, by their types.

import { html, useState } from './vendor/preact.js';
import { writeLink } from './state.js';
import { showTime } from './moment.js';
import { BlobValue, Bytes, ShortBytes } from './bytes.js';
import { Erased } from './erased.js';

/** So many characters of a value are shown before it is asked for all of it. */
const SHORT = 300;
/** So many are in a tip. */
const LONG = 1000;

/** So many characters of a value that was there before are shown beside the one after. */
export const WAS = 100;

export const kindOf = (field) => field.type.split('(')[0];
export const isNumeric = (field) => /^(u?int|float|decimal)/.test(kindOf(field));

/** The text below the name of a column: its type. */
export const typeOf = (field) => `${field.references ? `→ ${field.references}` : field.type}${field.is_nullable ? ' null' : ''}`;

const [PADDING, ARROW, WIDEST] = [22, 16, 320];
const pen = document.createElement('canvas').getContext('2d');
const widths = new Map();

/** The widths that were chosen, by table and field. */
const chosen = new Map();
const NARROWEST = 40;
const LONGEST = '-9223372036854775808';

export function widen(table, field, width) {
  chosen.set(`${table}/${field.key}`, Math.max(NARROWEST, Math.round(width)));
}

/** The width of a column: the one that was chosen; else room for usual values, for its name with the arrow of an order, and for
 *  its type. */
export function widthOf(table, field) {
  const texts = `${field.key}\n${typeOf(field)}`;
  if (!widths.has(texts)) {
    const { fontFamily } = getComputedStyle(document.body);
    const wide = (font, text) => {
      pen.font = `${font} ${fontFamily}`;
      return Math.ceil(pen.measureText(text).width) + PADDING;
    };
    const longest = /^u?int64$/.test(field.type) ? wide('13px', LONGEST) : 0;
    widths.set(texts, Math.max(wide('600 13px', field.key) + ARROW, wide('11px', typeOf(field)), longest));
  }
  return chosen.get(`${table}/${field.key}`) ?? Math.min(Math.max(usualWidth(field), widths.get(texts)), WIDEST);
}

/** The width that texts of a column want, and their neighbours leave. */
export function widthFor(texts) {
  pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return Math.min(Math.max(...texts.map((text) => pen.measureText(text).width)) + PADDING, 2 * WIDEST);
}

/** A text, cut where it is too long, with a sign that it is. */
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

function usualWidth(field) {
  const kind = kindOf(field);
  if (kind === 'bool') return 70;
  if (/^(float64|decimal)/.test(kind)) return 170;
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
  return String(value);
}

/** What stands for a text in which nothing would be seen; null for others. */
export function unseen(text) {
  if (text === '') return 'empty text';
  return /^\s+$/u.test(text) ? `${text.length} blank${text.length === 1 ? '' : 's'}` : null;
}

/** The text of a value where nothing else says what it is, as of one that was there before. `erasure` is the mark of an erased one. */
export function wasText(field, value, zone, erasure) {
  if (value == null) return erasure ? 'erased' : 'null';
  return unseen(textOf(field, value, zone)) ?? textOf(field, value, zone);
}

/** A value in a cell of a table: one line. `erasure` is the mark of an erased one. */
export function Cell({ field, value, link, zone, erasure }) {
  if (value == null) return erasure ? html`<${Erased} mark=${erasure} link=${link} zone=${zone} />` : html`<span class="null">null</span>`;
  if (field.references) {
    const to = writeLink({ ...link, view: 'row', table: field.references, id: value });
    return html`<a href=${to} title=${`${field.references} ${value}`}>${value} →</a>`;
  }
  if (kindOf(field) === 'bool') return html`<span class=${value ? 'yes' : 'no'}>${textOf(field, value, zone)}</span>`;
  if (kindOf(field) === 'enum') return html`<span class="variant">${value}</span>`;
  if (kindOf(field) === 'bytes') return html`<${ShortBytes} text=${value} />`;
  const text = textOf(field, value, zone);
  const said = unseen(text);
  return html`<span title=${said ?? cut(text, LONG)} class=${said && 'unseen'} data-said=${said}>${cut(text, SHORT)}</span>`;
}

/** A value with room around it: all of it. `origin` says of which row it is, and when. */
export function Value({ field, value, link, zone, origin, erasure }) {
  const [isLong, expand] = useState(false);
  const kind = kindOf(field);
  // The text itself: read and written again, it would have other numbers, and lack keys that are there twice.
  if (value != null && kind === 'json') return html`<details open=${value.length < 400}><summary>json</summary><pre>${value}</pre></details>`;
  if (value != null && kind === 'bytes') return html`<${Bytes} text=${value} />`;
  if (value != null && kind === 'blob') return html`<${BlobValue} value=${value} field=${field} origin=${origin} />`;
  if (typeof value === 'string' && value.length > SHORT) {
    return html`<span class="text">${isLong ? value : `${value.slice(0, SHORT)}…`}
      <button onClick=${() => expand(!isLong)}>${isLong ? 'less' : `all ${value.length} characters`}</button></span>`;
  }
  return html`<${Cell} field=${field} value=${value} link=${link} zone=${zone} erasure=${erasure} />`;
}
