// The explorer of a database: tables at every moment of their past.

import { html, render, useEffect, useReducer, useState } from './vendor/preact.js';
import { Model } from './model.js';
import { name } from './net.js';
import { writeLink } from './state.js';
import { allZones, number } from './moment.js';
import { Timeline, colourOf } from './timeline.js';
import { Grid } from './grid.js';
import { RowView } from './row.js';
import { SchemaView } from './schema.js';
import { LogView } from './log.js';
import { StorageView } from './storage.js';
import { SearchView, useFiltered } from './search.js';
import { copy, formats } from './copy.js';

/** So many names of tables are listed; further ones are found by typing. */
const MOST_TABLES = 200;

const KEYS = [
  ['← →', 'one transaction back or on'], ['shift ← →', 'one day back or on'], ['Home End', 'the first transaction, and now'],
  ['P', 'play'], ['M', 'pin this moment, to compare with'], ['F', 'follow what is committed'], ['/', 'search'],
  ['↑ ↓ Enter', 'in a table: choose a row, and open it'], ['T S L G', 'tables, schema, log, storage'],
  ['Escape', 'back to the table'], ['?', 'these keys'],
];

function App({ model }) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const [zone, setZone] = useState('UTC');
  const [isHelp, showHelp] = useState(false);
  useEffect(() => model.on(redraw), []);
  useEffect(() => {
    const key = (event) => keyPressed(event, model, () => showHelp((it) => !it));
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  document.title = `${model.link.table ?? model.link.view} · ${name}`;
  if (!model.catalog) return html`<p class="none" role="status">${model.error ?? 'loading ..'}</p>`;
  return html`
    <header>
      <h1>${name}</h1>
      <nav aria-label="pages">${[['schema', 'schema'], ['log', 'log'], ['search', 'search'], ['storage', 'storage']].map(([view, label]) => html`
        <a href=${writeLink({ ...model.link, view })} aria-current=${model.link.view === view ? 'page' : null}>${label}</a> `)}</nav>
      <label class="zone">times in <select value=${zone} onChange=${(event) => setZone(event.target.value)}>
        ${allZones.map((it) => html`<option value=${it}>${it}</option>`)}</select></label>
      <button aria-label="light or dark" title="light or dark" onClick=${toggleTheme}>◐</button>
      <button aria-label="keys" title="keys (?)" aria-expanded=${isHelp} onClick=${() => showHelp(!isHelp)}>?</button>
    </header>
    <${Timeline} model=${model} zone=${zone} />
    ${isHelp && html`<aside class="help" aria-label="keys"><dl>${KEYS.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl></aside>`}
    ${model.error && html`<p class="error" role="alert">${model.error}</p>`}
    <div class="body">
      <${Tables} model=${model} />
      <main><${Page} model=${model} zone=${zone} /></main>
    </div>`;
}

function Page({ model, zone }) {
  const { view } = model.link;
  if (view === 'schema') return html`<${SchemaView} model=${model} />`;
  if (view === 'log') return html`<${LogView} model=${model} zone=${zone} />`;
  if (view === 'storage') return html`<${StorageView} model=${model} />`;
  if (view === 'search') return html`<${SearchView} model=${model} zone=${zone} />`;
  const table = model.table();
  if (!table) return html`<p class="none">${model.catalog.tables.length ? 'Choose a table.' : 'This database has no tables yet.'}</p>`;
  if (view === 'row') return html`<${RowView} model=${model} table=${table} zone=${zone} />`;
  return html`<${TableView} model=${model} table=${table} zone=${zone} />`;
}

function TableView({ model, table, zone }) {
  const { link } = model;
  const filtered = useFiltered(model);
  const [said, say] = useState('');
  const isFiltered = Boolean(link.filter);
  const isStale = model.countsOf !== model.txid;
  const source = isFiltered ? { rows: filtered.rows, order: 'filter', from: 0 } : model.rows;
  const count = model.counts.get(table.name) ?? 0;
  const isById = !isFiltered && !link.order;
  // In the order of ids the scroll bar stands for ids.
  const start = isById ? Math.min(table.first_id, model.rows?.rows[0]?.id ?? Infinity) : 0;
  const total = isFiltered ? filtered.rows.length : isById ? Math.max(table.next_id - start, count) : count;
  const place = (first) => {
    if (isFiltered || first === Math.max(start, link.from)) return;
    model.link = { ...link, from: first };
    history.replaceState(null, '', writeLink(model.link));
    if (!model.rows?.has({ order: link.order, from: first, count: 60 })) model.go(model.link);
  };
  const take = async (format) => {
    await copy(format, table, source.rows);
    say(`${number(source.rows.length)} rows copied as ${format}`);
  };
  return html`
    <div class="tools">
      <h2>${table.name}</h2>
      <span class=${isStale ? 'stale' : ''} data-count=${isStale ? '' : count}>${number(count)} rows</span>
      <input type="search" aria-label="filter" placeholder="filter" value=${link.filter}
        onChange=${(event) => model.want({ filter: event.target.value, from: 0 })} />
      ${table.indexes.length > 0 && html`<label>order <select value=${link.order ?? ''}
        onChange=${(event) => model.want({ order: event.target.value || null, from: 0 })}>
        <option value="">id</option>${table.indexes.map((it) => html`<option value=${it.name}>${it.name}</option>`)}</select></label>`}
      <span class="copies">copy ${Object.keys(formats).map((format) => html`<button onClick=${() => take(format)}>${format}</button>`)}</span>
      <button onClick=${() => print()}>print</button>
      <span role="status">${said}</span>
      ${model.pinned?.note && html`<span>${model.pinned.note}</span>`}
      ${isFiltered && filtered.next && html`<button onClick=${filtered.more}>search on</button>`}
    </div>
    ${source && html`<${Grid} key=${`${table.name}/${link.order}/${link.filter}`} model=${model} table=${table} rows=${source}
      start=${start} total=${total} from=${link.from} onPlace=${place} zone=${zone} />`}`;
}

function Tables({ model }) {
  const [text, setText] = useState('');
  const all = model.catalog.tables.filter((it) => it.name.toLowerCase().includes(text.toLowerCase()));
  const changed = new Set(model.found?.changes.map((change) => change.table));
  const isStale = model.countsOf !== model.txid;
  return html`
    <nav class="tables" aria-label="tables">
      ${model.catalog.tables.length > 20 && html`<input type="search" aria-label="find a table" placeholder="table"
        value=${text} onInput=${(event) => setText(event.target.value)} />`}
      <ul>${all.slice(0, MOST_TABLES).map((it) => html`<li key=${it.name}>
        <a href=${writeLink({ ...model.link, view: 'table', table: it.name, from: 0, order: null, filter: '' })}
          aria-current=${it.name === model.link.table ? 'page' : null}><i style=${{ background: colourOf(model, it.name) }}></i>${it.name}</a>
        <small class=${`${changed.has(it.name) ? 'changed' : ''}${isStale ? ' stale' : ''}`}>${number(model.counts.get(it.name) ?? 0)}</small></li>`)}</ul>
      ${all.length > MOST_TABLES && html`<p>and ${number(all.length - MOST_TABLES)} more</p>`}
    </nav>`;
}

function toggleTheme() {
  const { dataset } = document.documentElement;
  const isDark = dataset.theme ? dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  dataset.theme = isDark ? 'light' : 'dark';
}

function keyPressed(event, model, toggleHelp) {
  const isTyping = event.target.closest?.('input:not([type=range]), select, textarea');
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping || !model.catalog) return;
  const at = model.link.at ?? model.last;
  const actions = {
    ArrowLeft: () => (event.shiftKey ? model.stepDay(-1) : model.wantTxid(at - 1)),
    ArrowRight: () => (event.shiftKey ? model.stepDay(1) : model.wantTxid(at + 1)),
    Home: () => model.wantTxid(model.first),
    End: () => model.wantTxid(model.last),
    p: () => document.querySelector('[data-do=play]')?.click(),
    m: () => document.querySelector('[data-do=pin]')?.click(),
    f: () => document.querySelector('[data-do=follow]')?.click(),
    '/': () => model.want({ view: 'search' }).then(() => document.querySelector('.search input')?.focus()),
    t: () => document.querySelector('.tables a')?.focus(),
    s: () => model.want({ view: 'schema' }),
    l: () => model.want({ view: 'log' }),
    g: () => model.want({ view: 'storage' }),
    Escape: () => model.want({ view: 'table' }),
    '?': toggleHelp,
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

const model = new Model();
globalThis.explorer = model;
render(html`<${App} model=${model} />`, document.body);
model.start();
