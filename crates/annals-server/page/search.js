// Finding rows by their values or ids, and transactions by their comments.

import { html, useEffect, useState } from './vendor/preact.js';
import { get } from './net.js';
import { writeLink } from './state.js';
import { number } from './moment.js';
import { textOf } from './cells.js';

export function SearchView({ model, zone }) {
  const { text } = model.link;
  const [found, setFound] = useState([]);
  const [next, setNext] = useState(null);
  const [isOver, setOver] = useState(false);
  const at = model.txid === model.last ? null : `txid:${model.txid}`;
  const ask = async (from, signal) => {
    const answer = await get('/search', { text, at, table: from?.table, from: from?.id }, signal);
    setFound((list) => (from ? [...list, ...answer.found] : answer.found));
    setNext(answer.next);
    setOver(!answer.next);
    document.body.dataset.ready = '1';
  };
  useEffect(() => {
    if (!text || model.txid == null) return undefined;
    const wait = new AbortController();
    document.body.dataset.ready = '0';
    setFound([]);
    ask(null, wait.signal).catch((error) => error.name === 'AbortError' || model.fail(error));
    return () => wait.abort();
  }, [text, model.txid]);
  const comments = (model.activity?.marks ?? [])
    .filter((mark) => text && mark.text.toLowerCase().includes(text.toLowerCase())).slice(0, 50);
  return html`
    <article class="search"><h2>Search</h2>
      <form onSubmit=${(event) => { event.preventDefault(); model.want({ text: new FormData(event.target).get('text') }); }}>
        <input name="text" aria-label="search for" value=${text} placeholder="a value, an id, a comment" /> <button>search</button></form>
      <ul>${found.map((hit) => html`<li><a href=${writeLink({ ...model.link, view: 'row', table: hit.table, id: hit.id })}>${hit.table} ${hit.id}</a>
        ${hit.field && html` · ${hit.field}: ${textOf({ key: hit.field, type: 'string' }, hit.value, zone).slice(0, 200)}`}</li>`)}</ul>
      ${next && html`<p>Searched up to ${next.table} ${number(next.id)}. <button onClick=${() => ask(next)}>search on</button></p>`}
      ${isOver && text && html`<p>All rows were searched: ${number(found.length)} found.</p>`}
      ${comments.length > 0 && html`<h3>Transactions</h3><ul>${comments.map((mark) => html`<li>
        <a href=${writeLink({ ...model.link, view: 'log', at: mark.txid })}>${number(mark.txid)}</a> ${mark.kind}: ${mark.text}</li>`)}</ul>`}
    </article>`;
}

/** The rows of a table that have a text in a value. */
export function useFiltered(model) {
  const { filter, table, view } = model.link;
  const [state, set] = useState({ rows: [], next: null });
  const at = model.txid === model.last ? null : `txid:${model.txid}`;
  const ask = async (from, before, signal) => {
    const answer = await get('/search', { text: filter, at, table, only: true, from }, signal);
    set({ rows: [...before, ...answer.found.map((hit) => hit.row)], next: answer.next, of: filter });
    document.body.dataset.ready = '1';
  };
  useEffect(() => {
    if (!filter || view !== 'table' || model.txid == null) return undefined;
    const wait = new AbortController();
    document.body.dataset.ready = '0';
    ask(0, [], wait.signal).catch((error) => error.name === 'AbortError' || model.fail(error));
    return () => wait.abort();
  }, [filter, table, view, model.txid]);
  return { ...state, more: state.next && (() => ask(state.next.id, state.rows)) };
}
