// Finding rows by their values or ids, and transactions by their comments.

import { html, useLayoutEffect, useState } from './vendor/preact.js';
import { get, query } from './net.js';
import { asking } from './ready.js';
import { writeLink } from './state.js';
import { number } from './moment.js';
import { textOf } from './cells.js';

/** An answer has what half a second was enough for: so many are asked for, one after the other, while little is found. */
const ANSWERS = 20;
const ENOUGH = 100;
/** So many other values of a row are shown. */
const OTHERS = 6;
/** So many transactions are shown. */
const MOST = 50;
const COMMENTS = `SELECT txid, comment FROM annals_log WHERE instr(lower(comment), lower(:text)) ORDER BY txid DESC LIMIT ${MOST}`;

const fieldOf = (model, hit) => model.table(hit.table)?.fields.find((it) => it.key === hit.field) ?? { key: hit.field, type: 'string' };

/** The first other values of a row that was found, to tell it from its neighbours. */
function others(model, hit, zone) {
  const fields = model.table(hit.table)?.fields ?? [];
  const shown = fields.filter(({ key }) => key !== hit.field && hit.row[key] != null && hit.row[key] !== '');
  return shown.slice(0, OTHERS).map((field) => `${field.key}: ${textOf(field, hit.row[field.key], zone).slice(0, 40)}`).join(' · ');
}

export function SearchView({ model, zone }) {
  const { text } = model.link;
  const [found, setFound] = useState([]);
  const [next, setNext] = useState(null);
  const [isOver, setOver] = useState(false);
  const [comments, setComments] = useState([]);
  const at = model.txid === model.last ? null : `txid:${model.txid}`;
  const ask = async (from, signal) => {
    let [place, count] = [from, 0];
    for (let turn = 0; turn < ANSWERS && count < ENOUGH; turn += 1) {
      const answer = await get('/search', { text, at, table: place?.table, from: place?.id }, signal);
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
    return asking('search', (signal) => ask(null, signal), (error) => model.fail(error));
  }, [text, model.txid]);
  useLayoutEffect(() => {
    setComments([]);
    if (!text) return undefined;
    return asking('comments', async (signal) => setComments((await query(COMMENTS, { text }, signal)).rows), (error) => model.fail(error));
  }, [text]);
  const marks = (model.activity?.marks ?? []).filter((mark) => mark.kind !== 'comment'
    && text && mark.text.toLowerCase().includes(text.toLowerCase())).slice(0, MOST);
  return html`
    <article class="search"><h2>Search</h2>
      <form onSubmit=${(event) => { event.preventDefault(); model.want({ text: new FormData(event.target).get('text') }); }}>
        <input name="text" aria-label="search for" value=${text} placeholder="a value, an id, a comment, or field=value" /> <button class="primary">search</button></form>
      ${!text && html`<p>Finds rows, at the moment of the slider, that have a text in a value or this id; and transactions by their comments.
        With <code>field=value</code>, as <code>closed=yes</code>, rows with this value.</p>`}
      <ul>${found.map((hit) => html`<li><a href=${writeLink({ ...model.link, view: 'row', table: hit.table, id: hit.id })}>${hit.table} ${hit.id}</a>
        ${hit.field && html` · ${hit.field}: ${textOf(fieldOf(model, hit), hit.value, zone).slice(0, 200)}`}
        <small> ${others(model, hit, zone)}</small></li>`)}</ul>
      ${next && html`<p>Searched up to ${next.table} ${number(next.id)}. <button onClick=${() => ask(next)}>search on</button></p>`}
      ${isOver && text && html`<p>All rows were searched: ${number(found.length)} found.</p>`}
      ${comments.length + marks.length > 0 && html`<h3>Transactions</h3><ul>
        ${[...comments.map((it) => [it.txid, `comment: ${it.comment}`]), ...marks.map((it) => [it.txid, `${it.kind}: ${it.text}`])].map(([txid, what]) => html`<li>
          <a href=${writeLink({ ...model.link, view: 'log', at: txid })}>${number(txid)}</a> ${what.slice(0, 300)}</li>`)}</ul>`}
    </article>`;
}

/** The rows of a table that have a text in a value. */
export function useFiltered(model) {
  const { filter, table, view } = model.link;
  const [state, set] = useState({ rows: [], next: null });
  const at = model.txid === model.last ? null : `txid:${model.txid}`;
  const ask = async (from, before, signal) => {
    let [place, rows] = [from, before];
    for (let turn = 0; turn < ANSWERS && rows.length < before.length + ENOUGH; turn += 1) {
      const answer = await get('/search', { text: filter, at, table, only: true, from: place }, signal);
      rows = [...rows, ...answer.found.map((hit) => hit.row)];
      set({ rows, next: answer.next, of: filter });
      place = answer.next?.id;
      if (place == null) return;
    }
  };
  useLayoutEffect(() => {
    if (!filter || view !== 'table' || model.txid == null) return undefined;
    return asking('filter', (signal) => ask(0, [], signal), (error) => model.fail(error));
  }, [filter, table, view, model.txid]);
  return { ...state, more: state.next && (() => ask(state.next.id, state.rows)) };
}
