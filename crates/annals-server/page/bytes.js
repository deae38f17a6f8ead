// Bytes and blobs: as pictures, as text, or as a file.

import { html, useEffect, useMemo, useState } from './vendor/preact.js';
import { query } from './net.js';
import { quoted } from './complete.js';
import { bytes as sizeOf } from './moment.js';

/** So many characters of a text are shown before it is asked for all of it. */
const SHORT = 300;
/** A picture with more bytes isn't drawn in a table. */
const SMALL = 64 << 10;

const pictures = [['image/png', '89504e47'], ['image/jpeg', 'ffd8ff'], ['image/gif', '47494638'], ['image/webp', '52494646']];

function bytesOf(text) {
  const bytes = new Uint8Array((text.length - 2) >> 1);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = Number.parseInt(text.slice(2 * place + 2, 2 * place + 4), 16);
  return bytes;
}

/** Returns the type of a picture that a value is, by its first bytes. */
function pictureOf(text) {
  const start = text.slice(2, 18).toLowerCase();
  return pictures.find(([, magic]) => start.startsWith(magic))?.[0];
}

/** Returns what bytes say as UTF-8; null if they don't. */
function readText(bytes) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return /[\u0000-\u0008\u000e-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** Has an address for bytes as long as they are shown. */
function useAddress(text, type) {
  const url = useMemo(() => URL.createObjectURL(new Blob([bytesOf(text)], { type })), [text, type]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return url;
}

function Picture({ text, type }) {
  return html`<img alt="the value as a picture" src=${useAddress(text, type)} />`;
}

/** Bytes in a cell of a table. */
export function ShortBytes({ text }) {
  const type = pictureOf(text);
  if (type && text.length / 2 < SMALL) return html`<${Picture} text=${text} type=${type} />`;
  return html`<span title=${sizeOf((text.length - 2) / 2)}>${text.length > 60 ? `${text.slice(0, 60)}…` : text}</span>`;
}

/** Bytes with room around them. */
export function Bytes({ text }) {
  const [isLong, expand] = useState(false);
  const type = pictureOf(text);
  const said = useMemo(() => (type ? null : readText(bytesOf(text))), [text]);
  const url = useAddress(text, type ?? 'application/octet-stream');
  const written = said ?? text;
  return html`<span class="bytes">
    ${type ? html`<img alt="the value as a picture" src=${url} />` : html`<code>${isLong || written.length <= SHORT ? written : `${written.slice(0, SHORT)}…`}</code>
      ${written.length > SHORT && html` <button onClick=${() => expand(!isLong)}>${isLong ? 'less' : 'all'}</button>`}`}
    ${' '}<a download="value.bin" href=${url}>download ${sizeOf((text.length - 2) / 2)}</a></span>`;
}

/** A blob: its bytes are fetched when they are asked for. */
export function BlobValue({ value, field, origin }) {
  const [text, setText] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => { setText(null); setProblem(null); }, [value]);
  if (text) return html`<${Bytes} text=${text} />`;
  const load = async () => {
    const { table, id, txid } = origin;
    const sql = `SELECT ${quoted(field.key)} AS value FROM ${quoted(`${table}_at`)}(:moment) WHERE id = ${id}`;
    try {
      const [row] = (await query(sql, { moment: `txid:${txid}` })).rows;
      if (row?.value) setText(row.value);
      else setProblem('its bytes are gone');
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<span>${value} ${problem ? html`<span class="error">${problem}</span>` : html`<button data-do="load" onClick=${load}>load</button>`}</span>`;
}
