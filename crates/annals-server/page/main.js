// The explorer of a database: tables at every moment of their past.

import { html, render, useEffect, useReducer, useRef, useState } from './vendor/preact.js';
import { MOST_TABLES, Model } from './model.js';
import { asked, name } from './net.js';
import { waiting } from './ready.js';
import { writeLink } from './state.js';
import { number, plural, zones } from './moment.js';
import { Timeline, nameOf, steady } from './timeline.js';
import { colourOf } from './plot.js';
import { Grid } from './grid.js';
import { RowView } from './row.js';
import { SchemaView } from './schema.js';
import { LogView } from './log.js';
import { StorageView } from './storage.js';
import { Filter, SearchView, useFiltered } from './search.js';
import { SqlView } from './sql.js';
import { copy, fieldsOf, files, formats } from './copy.js';
import { erasures } from './erased.js';

const PAGES = [['table', 'Tables'], ['schema', 'Schema'], ['log', 'Log'], ['search', 'Search'], ['sql', 'SQL'], ['storage', 'Storage']];
const KEYS = [
  ['← →', 'one transaction back or on'], ['shift ← →', 'one day back or on'], ['[ ]', 'the mark before, and the next one'], ['Home End', 'the first transaction, and now'],
  ['P', 'play'], ['M', 'pin this moment, to compare with'], ['F', 'follow what is committed'], ['C', 'only what changed'], ['/', 'search'],
  ['↑ ↓ Enter', 'in a table: choose a row, and open it'], ['T S L Q G', 'tables, schema, log, SQL, storage'],
  ['Escape', 'back to the table'], ['?', 'these keys'],
];

function App({ model }) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const { zone } = model.link;
  const [isHelp, showHelp] = useState(false);
  useEffect(() => model.on(redraw), []);
  useFocus(model);
  useEffect(() => {
    const key = (event) => keyPressed(event, model, () => showHelp((it) => !it));
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  document.title = `${model.link.table ?? model.link.view} · ${name}`;
  if (!model.catalog) return html`<p class="none" role="status">${model.error ?? 'loading ..'}</p>`;
  return html`
    <header>
      <h1><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 1a7 7 0 1 0 7 7M8 4v4l3 2M11 1l4 4M15 1v4h-4" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" /></svg>${name}</h1>
      <nav aria-label="pages">${PAGES.map(([view, label]) => html`
        <a href=${writeLink({ ...model.link, view, table: view === 'table' ? model.tableOrLast : model.link.table })} aria-current=${model.link.view === view || (view === 'table' && model.link.view === 'row') ? 'page' : null}>${label}</a> `)}</nav>
      <label class="zone">times in <select value=${zone} onChange=${(event) => model.want({ zone: event.target.value }, true)}>
        ${zones(zone).map((it) => html`<option value=${it}>${it}</option>`)}</select></label>
      <button aria-label="light or dark" title="light or dark" onClick=${toggleTheme}>◐</button>
      <button aria-label="keys" title="keys (?)" aria-expanded=${isHelp} onClick=${() => showHelp(!isHelp)}>?</button>
    </header>
    <${Timeline} model=${model} zone=${zone} />
    ${isHelp && html`<aside class="help" aria-label="keys"><p>Drag along the plot above to any moment: all pages show the database as it was then. Coloured cells are
      those that the transaction changed; to see what differs between two moments, go to the first one, press <b>compare from here</b>, and go to the other.</p><dl>${KEYS.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl></aside>`}
    ${model.error && html`<p class="error" role="alert">${model.error}${model.isLost && html` <button data-do="again" onClick=${() => model.go(model.link)}>try again</button>`}</p>`}
    ${model.link.wrong?.length > 0 && html`<p class="error" role="alert" data-wrong>This link isn't understood in full: ${model.link.wrong.join('; ')}.</p>`}
    <div class="body">
      <${Tables} model=${model} />
      <main aria-busy=${!model.isLost && model.txid !== (model.link.at ?? model.last)}>${model.isLost
        ? html`<p class="none" data-lost>Nothing is shown: what the link asks for couldn't be read.</p>` : html`<${Page} model=${model} zone=${zone} />`}</main>
    </div>`;
}

/** The focus stays in what is shown, when the part that had it is gone: after a row was opened, and after Back. */
function useFocus(model) {
  const { view, table, id } = model.link;
  const shown = `${view}/${table}/${id}`;
  const { current: state } = useRef({ shown, isLost: false });
  // Until this is drawn, what is there is of the link before.
  if (state.shown !== shown) Object.assign(state, { shown, isLost: state.isLost || document.activeElement !== document.body });
  useEffect(() => {
    const part = state.isLost && document.querySelector(view === 'table' ? 'main .grid' : 'main h2');
    if (!part) return;
    state.isLost = false;
    if (document.activeElement !== document.body) return;
    if (!part.hasAttribute('tabindex')) part.setAttribute('tabindex', -1);
    part.focus({ preventScroll: true });
  });
}

function Page({ model, zone }) {
  const { view } = model.link;
  if (view === 'sql') return html`<${SqlView} model=${model} />`;
  if (view === 'schema') return html`<${SchemaView} model=${model} />`;
  if (view === 'log') return html`<${LogView} model=${model} zone=${zone} />`;
  if (view === 'storage') return html`<${StorageView} model=${model} />`;
  if (view === 'search') return html`<${SearchView} model=${model} zone=${zone} />`;
  const table = model.table();
  if (!table) return html`<p class="none">${model.shown.tables.length ? 'Choose a table.' : 'This database has no tables yet.'}</p>`;
  if (view === 'row') return html`<${RowView} model=${model} table=${table} zone=${zone} />`;
  return html`<${TableView} model=${model} table=${table} zone=${zone} />`;
}

function TableView({ model, table, zone }) {
  const { link } = model;
  const filtered = useFiltered(model);
  const [said, say] = useState('');
  const isChanged = link.only === 'changed';
  // Until the first answer is here, all rows stay.
  const isFiltered = isChanged || (Boolean(link.filter) && filtered.of != null);
  const isStale = model.countsOf !== model.txid;
  const listed = isChanged ? model.changedRows() : filtered.rows;
  const source = isFiltered ? { rows: listed, order: 'filter', from: 0 } : link.filter && model.rows?.txid !== model.txid ? null : model.rows;
  const count = model.counts.get(table.name) ?? 0;
  const isById = !isFiltered && !link.order;
  // In the order of ids the scroll bar stands for ids.
  const start = isById ? Math.min(table.first_id, model.rows?.rows[0]?.id ?? Infinity) : 0;
  const total = isFiltered ? listed.length : isById ? Math.max(table.next_id - start, count) : count;
  const place = (first) => {
    // A link that was just followed isn't replaced.
    if (isFiltered || link.filter || location.hash !== model.address || first === Math.max(start, link.from)) return;
    model.link = { ...link, from: first };
    model.writeSoon();
    if (!model.rows?.has({ ...model.place, from: first })) model.go(model.link);
  };
  const isPart = source && !isFiltered && !isStale && source.rows.length < count;
  const part = isPart && `${number(source.rows.length)} of ${number(count)} rows`;
  const take = async (format) => {
    const isErased = (row, field) => row[field.key] == null && erasures(model, table, row.id, model.txid)(field);
    await copy(format, fieldsOf(table), source.rows, isErased);
    const erased = format === 'Markdown' ? 0 : source.rows.flatMap((row) => table.fields.filter((field) => isErased(row, field))).length;
    say(`${isPart ? `${part} copied: those that are loaded` : `${number(source.rows.length)} rows copied as ${format}`}${erased ? `; ${plural(erased, 'erased value')} as null` : ''}`);
  };
  return html`
    <div class="tools">
      <div class="about"><h2>${table.name}</h2>
        ${link.filter && html`<span data-found=${filtered.isOf ? listed.length : ''}>${filtered.isOf ? `${number(listed.length)}${filtered.next ? ' so far' : ''} of ` : 'searching ..'}</span>`}
        <span class=${`count${isStale ? ' stale' : ''}`} data-count=${isStale ? '' : count}>${number(count)} row${count === 1 ? '' : 's'}</span>
        ${link.filter && filtered.isOf && filtered.next && html`<button onClick=${filtered.more}>search on</button>`}
        <span role="status">${said}</span><${Legend} model=${model} /></div>
      ${isPart && html`<p class="paper">These are ${part}: the page has no more at once. All rows as a file: "copy, save".</p>`}
      <${Filter} key=${table.name} model=${model} />
      <button data-do="changes" aria-pressed=${isChanged} title="only the rows that the transaction changed, or that differ from the pinned moment (C)"
        onClick=${() => model.want({ only: isChanged ? '' : 'changed', filter: '', from: 0 })}>${steady(`${model.pinned ? 'only differences' : 'only changes'}: ${number(model.touched().size)}`, 'only differences: 0,000')}</button>
      ${table.indexes.length > 0 && html`<label>sort by <select value=${link.order ?? ''}
        onChange=${(event) => model.want({ order: event.target.value || null, from: 0 })}>
        <option value="">id</option>${table.indexes.map((it) => html`<option value=${it.name}>${it.name}</option>`)}</select></label>`}
      <details class="menu copies"><summary>copy, save</summary><span>${isPart && html`<small>copy ${part}</small>`}${Object.keys(formats).map((format) => html`<button
        onClick=${(event) => { event.target.closest('details').open = false; take(format); }}>${format}</button>`)}
        <small>all rows as a file${model.activity?.marks.some((it) => it.erased?.table === table.number) && ', erased values as null'}</small>${files(model, table.name).map(([format, href]) => html`<a href=${href} download data-file=${format}>${format}</a>`)}</span></details>
      <a href=${writeLink({ ...link, view: 'log', of: table.name })} title="the transactions that changed this table">log</a>
      <button data-do="print" title=${isPart ? `prints ${part}: those that are loaded` : 'prints all rows'} onClick=${() => model.print()}>${isPart ? `print ${number(source.rows.length)}` : 'print'}</button>
    </div>
    ${source && html`<${Grid} key=${`${table.name}/${link.order}/${(isFiltered && filtered.of) || ''}/${link.only}`} model=${model} table=${table} rows=${source}
      start=${start} total=${total} from=${link.from} onPlace=${place} zone=${zone} />`}`;
}

/** What the colours mean. */
function Legend({ model }) {
  const { pinned } = model;
  const differing = pinned?.tables.get(model.link.table) ?? 0;
  if (!model.touched().size) return html`<div class="legend">${pinned?.next ? 'comparing ..' : pinned ? 'no row of this table differs from the pinned moment' : 'this transaction changed no row of this table'}</div>`;
  const since = pinned ? `since ${nameOf(pinned, model.link.zone)}` : 'by this transaction';
  const sign = (colour, text) => html`<span><i style=${{ background: `var(--${colour})` }}></i>${text}</span>`;
  return html`<div class="legend">${sign('changed', 'changed')}${sign('inserted', 'inserted')}${model.link.only && sign('deleted', 'deleted')}<span>${since}</span>
    ${differing > pinned?.changes.length && html`<span>the first ${number(pinned.changes.length)} of ${number(differing)} rows that differ</span>`}
    ${pinned?.next && html`<span>comparing ..</span>`}</div>`;
}

function Tables({ model }) {
  const [text, setText] = useState('');
  const { tables } = model.shown;
  const all = tables.filter((it) => it.name.toLowerCase().includes(text.toLowerCase()));
  const changed = new Set(model.found?.changes.map((change) => change.table));
  const isStale = model.countsOf !== model.txid;
  const isPast = model.link.at != null && model.link.at < model.last;
  const differs = isPast && model.activity?.marks.some((mark) => mark.kind === 'schema' && mark.txid > model.link.at);
  return html`
    <nav class="tables" aria-label="tables"><h2>Tables</h2>
      ${(differs || model.isThen) && html`<button data-do="then" aria-pressed=${model.isThen} title="tables and fields as they were at the moment, with those that were dropped since"
        onClick=${() => model.want({ then: !model.link.then, order: null })}>schema of that time</button>`}
      ${tables.length > 20 && html`<input type="search" aria-label="find a table" placeholder="table"
        value=${text} onInput=${(event) => setText(event.target.value)} />`}
      <ul>${all.slice(0, MOST_TABLES).map((it) => html`<li key=${it.name}>
        <a href=${writeLink({ ...model.link, view: 'table', table: it.name, from: 0, order: null, filter: '', only: '' })}
          aria-current=${it.name === model.link.table ? 'page' : null}><i style=${{ background: colourOf(model, it.name) }}></i>${it.name}</a>
        <${OfTable} model=${model} table=${it.name} isChanged=${changed.has(it.name)} isStale=${isStale} /></li>`)}</ul>
      ${all.length > MOST_TABLES && html`<p>and ${number(all.length - MOST_TABLES)} more</p>`}
    </nav>`;
}

/** How many rows a table has; while moments are compared, how many of them differ. */
function OfTable({ model, table, isChanged, isStale }) {
  const { pinned } = model;
  const count = model.counts.get(table);
  const differing = pinned?.tables.get(table);
  if (differing) return html`<small class="changed" data-differs=${differing} title=${`${number(differing)}${pinned.next ? ' or more' : ''} rows differ from ${nameOf(pinned, model.link.zone)}`}>≠ ${number(differing)}${pinned.next ? '+' : ''}</small>`;
  return html`<small class=${`${isChanged && !pinned ? 'changed' : ''}${isStale ? ' stale' : ''}`}>${count != null && number(count)}</small>`;
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
    '[': () => model.stepMark(-1),
    ']': () => model.stepMark(1),
    p: () => document.querySelector('[data-do=play]')?.click(),
    m: () => document.querySelector('[data-do=pin]')?.click(),
    f: () => document.querySelector('[data-do=follow]')?.click(),
    c: () => document.querySelector('[data-do=changes]')?.click(),
    '/': () => model.want({ view: 'search' }).then(() => document.querySelector('.search input')?.focus()),
    t: () => document.querySelector('.tables a')?.focus(),
    s: () => model.want({ view: 'schema' }),
    l: () => model.want({ view: 'log' }),
    q: () => model.want({ view: 'sql' }).then(() => document.querySelector('.sql textarea')?.focus()),
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
globalThis.explorer = Object.assign(model, { asked, waiting });
render(html`<${App} model=${model} />`, document.body);
model.start();
