// Finding rows by their values or ids, and transactions by their comments.

import { html, useEffect, useLayoutEffect, useState } from './vendor/preact.js';
import { get, query } from './net.js';
import { asking } from './ready.js';
import { writeLink } from './state.js';
import { number, showTime } from './moment.js';
import { wasText } from './cells.js';
import { erasures } from './erased.js';

/** An answer has what half a second was enough for: so many are asked for, one after the other, while little is found. */
const ANSWERS = 20;
const ENOUGH = 100;
/** So many other values of a row are shown. */
const OTHERS = 6;
/** After so many milliseconds without a key a filter applies. */
const PAUSE = 200;
/** So many transactions are shown. */
const MOST = 50;
const COMMENTS = `SELECT txid, comment FROM annals_log WHERE instr(lower(comment), lower(:text)) ORDER BY txid DESC LIMIT ${MOST}`;

const fieldOf = (model, hit) => model.catalog.byName.get(hit.table)?.fields.find((it) => it.key === hit.field) ?? { key: hit.field, type: 'string' };

/** A row that was deleted is shown at the last moment at which it was there. */
const linkTo = (model, { table, id, deleted }) => writeLink({ ...model.link, view: 'row', table, id, filter: '', only: '', order: null, at: deleted ? deleted.txid - 1 : model.link.at });

/** The value that was found, and the first other ones of its row, to tell it from its neighbours. */
function Values({ model, hit, zone }) {
  const table = model.catalog.byName.get(hit.table);
  const erasure = erasures(model, table, hit.id, hit.deleted ? hit.deleted.txid - 1 : model.txid);
  const isThere = (field) => hit.row[field.key] !== '' && (hit.row[field.key] != null || erasure(field));
  const shown = (table?.fields ?? []).filter((field) => field.key !== hit.field && isThere(field)).slice(0, OTHERS);
  const text = (field, value, most) => `${field.key}: ${wasText(field, value, zone, erasure(field)).slice(0, most)}`;
  return html`${hit.field && html` · ${text(fieldOf(model, hit), hit.value, 200)}`}
    <small> ${shown.map((field) => text(field, hit.row[field.key], 40)).join(' · ')}</small>`;
}

export function SearchView({ model, zone }) {
  const { text, deleted } = model.link;
  const [found, setFound] = useState([]);
  const [next, setNext] = useState(null);
  const [isOver, setOver] = useState(false);
  const [leftOut, setLeftOut] = useState([]);
  const [comments, setComments] = useState([]);
  const at = model.txid === model.last ? null : `txid:${model.txid}`;
  const ask = async (from, signal) => {
    let [place, count] = [from, 0];
    for (let turn = 0; turn < ANSWERS && count < ENOUGH; turn += 1) {
      const answer = await get('/search', { text, at, deleted: deleted || null, table: place?.table, from: place?.id }, signal);
      if (signal?.aborted) return;
      setLeftOut((list) => [...new Set([...list, ...answer.left_out])]);
      setFound((list) => [...list, ...answer.found]);
      setNext(answer.next);
      setOver(!answer.next);
      [place, count] = [answer.next, count + answer.found.length];
      if (!place) return;
    }
  };
  useLayoutEffect(() => {
    if (!text || model.txid == null) return undefined;
    setFound([]);
    setLeftOut([]);
    return asking('search', (signal) => ask(null, signal), (error) => model.lose(error));
  }, [text, deleted, model.txid]);
  useLayoutEffect(() => {
    setComments([]);
    if (!text) return undefined;
    return asking('comments', async (signal) => setComments((await query(COMMENTS, { text }, signal)).rows), (error) => model.fail(error));
  }, [text]);
  const wanted = (form) => model.want({ text: form.elements.text.value, deleted: form.elements.deleted.checked });
  const marks = (model.activity?.marks ?? []).filter((mark) => mark.kind !== 'comment'
    && text && mark.text.toLowerCase().includes(text.toLowerCase())).slice(0, MOST);
  return html`
    <article class="search"><h2>Search</h2>
      <form onSubmit=${(event) => { event.preventDefault(); wanted(event.target); }}>
        <input name="text" aria-label="search for" value=${text} placeholder="a value, an id, a comment, or field=value" /> <button class="primary">search</button>
        <label><input type="checkbox" name="deleted" checked=${deleted} onChange=${(event) => wanted(event.target.form)} /> also rows that were deleted</label></form>
      ${!text && html`<p>Finds rows, at the moment of the slider, that have a text in a value or this id; and transactions by their comments.
        With <code>field=value</code>, as <code>closed=yes</code>, rows with this value.
        Rows that were deleted before that moment are found by the last values that they had.</p>`}
      <ul>${found.map((hit) => html`<li class=${hit.deleted ? 'gone' : ''}><a href=${linkTo(model, hit)}>${hit.table} ${hit.id}</a>
        ${hit.deleted && html` <span class="kind delete" title=${`by transaction ${number(hit.deleted.txid)}; the link leads to the moment before it`}>deleted ${showTime(hit.deleted.time, zone)}</span>`}
        <${Values} model=${model} hit=${hit} zone=${zone} /></li>`)}</ul>
      ${next && html`<p>Searched up to ${next.table} ${number(next.id)}. <button onClick=${() => ask(next)}>search on</button></p>`}
      ${isOver && text && html`<p>All rows were searched${deleted ? ', and those that were deleted' : ''}: ${number(found.length)} found.
        ${deleted && leftOut.length > 0 && html` Not the deleted rows of ${leftOut.slice(0, OTHERS).join(', ')}${leftOut.length > OTHERS && ' and others'}: without a history index.`}</p>`}
      ${comments.length + marks.length > 0 && html`<h3>Transactions</h3><ul>
        ${[...comments.map((it) => [it.txid, `comment: ${it.comment}`]), ...marks.map((it) => [it.txid, `${it.kind}: ${it.text}`])].map(([txid, what]) => html`<li>
          <a href=${writeLink({ ...model.link, view: 'log', at: txid })}>${number(txid)}</a> ${what.slice(0, 300)}</li>`)}</ul>`}
    </article>`;
}

/** The field of a filter, which applies while it is typed. */
export function Filter({ model }) {
  const { filter } = model.link;
  const [typed, type] = useState(null);
  const apply = (text) => {
    type(null);
    // What is typed is one step of the browser's history.
    if (text !== filter) model.want({ filter: text, only: '', from: 0 }, Boolean(filter));
  };
  useEffect(() => {
    if (typed == null) return undefined;
    const timer = setTimeout(apply, PAUSE, typed);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`<input type="search" aria-label="filter" placeholder="text, or field=value" title="only rows that have a text in a value, an id, or a value of a field, as closed=yes" value=${typed ?? filter}
    onInput=${(event) => type(event.target.value)} onChange=${(event) => apply(event.target.value)} />`;
}

/** No rows: `of` says of which table, moment and text they are. */
const NONE = { rows: [], next: null, of: null };

/** The rows of a table that have a text in a value. Until those of the newest text are here, the ones before stay. */
export function useFiltered(model) {
  const { filter, table, view } = model.link;
  const [state, set] = useState(NONE);
  const of = `${table}/${model.txid}/${filter}`;
  const at = model.txid === model.last ? null : `txid:${model.txid}`;
  const [turn, again] = useState(null);
  const ask = async (from, before, signal) => {
    let [place, rows] = [from, before];
    for (let count = 0; count < ANSWERS && rows.length < before.length + ENOUGH; count += 1) {
      const answer = await get('/search', { text: filter, at, table, only: true, from: place }, signal);
      if (signal.aborted) return;
      rows = [...rows, ...answer.found.map((hit) => hit.row)];
      set({ rows, next: answer.next, of });
      place = answer.next?.id;
      if (place == null) return;
    }
  };
  useLayoutEffect(() => {
    if (!filter) set(NONE);
    if (!filter || view !== 'table' || model.txid == null) return undefined;
    const [from, before] = turn && turn.of === of ? [turn.next.id, turn.rows] : [0, []];
    return asking('filter', (signal) => ask(from, before, signal), (error) => model.lose(error));
  }, [filter, table, view, model.txid, turn]);
  return { ...state, isOf: state.of === of, more: state.next && (() => again(state)) };
}
