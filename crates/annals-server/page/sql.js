// Queries in SQL, at the moment of the slider.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './vendor/preact.js';
import { isNumber, query } from './net.js';
import { asking } from './ready.js';
import { complete, onlyTable, quoted } from './complete.js';
import { Chart, KINDS } from './chart.js';
import { copy, formats, save } from './copy.js';
import { cut, unseen } from './cells.js';
import { number } from './moment.js';
import { writeLink } from './state.js';

/** So many rows of an answer are shown; copies and files have all. */
const MOST = 500;

/** When a field was changed, and in which rows: of the last one that says yes or no, if there is one. */
function whenChanged(table) {
  const { key } = table.fields.findLast((it) => it.type === 'bool') ?? table.fields.at(-1) ?? {};
  if (!key) return [];
  const [before, after] = [quoted(`old_${key}`), quoted(`new_${key}`)];
  return [[`when ${key} of ${table.name} was changed`, `SELECT annals_time(time) AS time, txid, id, ${before}, ${after}\nFROM ${quoted(`${table.name}_history`)} WHERE ${before} IS NOT ${after} AND kind = 'update' ORDER BY txid DESC LIMIT 100`]];
}

/** Queries to begin with, about the tables that there are. */
function examples(model) {
  const table = model.table(model.tableOrLast);
  const log = [
    ['changes by transaction', 'SELECT txid, changes, comment FROM annals_log ORDER BY txid DESC LIMIT 200', 'line,txid,changes'],
    ['the largest transactions', 'SELECT txid, annals_time(time) AS time, changes, comment FROM annals_log ORDER BY changes DESC LIMIT 20'],
  ];
  if (!table) return log;
  const beside = (ending) => quoted(table.name + ending);
  return [
    [`${table.name} at the slider's moment`, `SELECT * FROM ${beside('_at')}(:moment) LIMIT 100`],
    [`how often ${table.name} was changed`, `SELECT date(annals_time(time)) AS day, kind, count(*) AS versions\nFROM ${beside('_history')} GROUP BY day, kind ORDER BY day`, 'bars,day,versions'],
    ...whenChanged(table),
    [`what differs between then and now`, `SELECT * FROM ${beside('_changes')}(:moment) LIMIT 100`],
    ...log,
  ];
}

export function SqlView({ model }) {
  const { link, txid } = model;
  const [answer, setAnswer] = useState(null);
  const [problem, setProblem] = useState(null);
  const [turn, again] = useState(0);
  // A query that asks about the slider's moment is asked again when that moves.
  const moment = /:moment\b/.test(link.sql) ? `txid:${txid}` : null;
  useLayoutEffect(() => {
    setProblem(null);
    if (!link.sql) setAnswer(null);
    if (!link.sql || txid == null) return undefined;
    const fail = (error) => {
      setAnswer(null);
      setProblem({ message: error.message, sql: link.sql });
    };
    return asking('sql', async (signal) => {
      const begun = performance.now();
      const found = await query(link.sql, moment && { moment }, signal);
      setAnswer({ ...found, moment, milliseconds: performance.now() - begun });
    }, fail);
  }, [link.sql, moment, txid == null, turn]);
  const run = (sql) => (sql === link.sql ? again((count) => count + 1) : model.want({ sql, chart: '' }));
  return html`
    <article class="sql"><h2>SQL</h2>
      <${Editor} model=${model} sql=${link.sql} problem=${problem} onRun=${run} />
      ${!link.sql && html`<p>A query reads tables as they are now, and with <code>T_at(:moment)</code> at the slider's moment.${' '}
        <code>T_history</code>, <code>T_changes(A, B)</code>, <code>T_blame</code> and <code>annals_log</code> have the past. For example:</p>
        <ul class="examples">${examples(model).map(([text, sql, chart]) => html`<li><a href=${writeLink({ ...link, sql, chart: chart ?? '' })}>${text}</a></li>`)}</ul>`}
      ${problem && html`<${Problem} ...${problem} />`}
      ${answer && html`<${Answer} model=${model} answer=${answer} />`}
    </article>`;
}

/** The place in a query that SQLite complains about: it says how the rest of it begins. */
export function placeOf(message, sql) {
  const [, rest] = message.match(/, at: (.*)$/s) ?? [];
  const place = rest ? sql.indexOf(rest) : -1;
  return place < 0 ? null : place;
}

function Problem({ message, sql }) {
  const place = placeOf(message, sql);
  const text = place == null ? message : message.replace(/, at: .*$/s, '');
  const before = sql.slice(0, place ?? 0).split('\n');
  const [word] = sql.slice(place ?? 0).match(/^\w+|^./s) ?? [''];
  const line = sql.split('\n')[before.length - 1];
  const column = before.at(-1).length;
  return html`<div class="error" role="alert" data-place=${place}>
    <p>${text}${place != null && html` (line ${before.length}, column ${column + 1})`}</p>
    ${place != null && html`<pre>${line.slice(0, column)}<mark>${word}</mark>${line.slice(column + word.length)}</pre>`}</div>`;
}

function Editor({ model, sql, problem, onRun }) {
  const box = useRef(null);
  const [text, setText] = useState(sql);
  const [offered, offer] = useState(null);
  const [chosen, choose] = useState(0);
  useEffect(() => setText(sql), [sql]);
  useEffect(() => {
    const place = problem && placeOf(problem.message, problem.sql);
    if (place != null && document.activeElement === box.current) box.current.setSelectionRange(place, place);
  }, [problem]);
  const typed = (event) => {
    setText(event.target.value);
    offer(complete(model.catalog, event.target.value, event.target.selectionStart));
    choose(0);
  };
  const options = offered?.options ?? [];
  const take = (option) => {
    const { selectionStart: caret } = box.current;
    box.current.setRangeText(option.text, offered.from, caret, 'end');
    setText(box.current.value);
    offer(null);
    box.current.focus();
  };
  const key = (event) => {
    const move = { ArrowDown: 1, ArrowUp: options.length - 1 }[event.key];
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      offer(null);
      onRun(text);
    }
    else if (!options.length) return;
    else if (move) choose((chosen + move) % options.length);
    else if (event.key === 'Tab' && !event.shiftKey) take(options[chosen]);
    else if (event.key === 'Escape') offer(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <div class="editor">
      <textarea ref=${box} aria-label="query" spellcheck="false" autocapitalize="off" autocomplete="off"
        rows=${Math.min(12, Math.max(3, text.split('\n').length + 1))} placeholder="SELECT .." value=${text}
        aria-autocomplete="list" aria-controls=${options.length ? 'completions' : null}
        aria-activedescendant=${options.length ? `completion-${chosen}` : null}
        onInput=${typed} onKeyDown=${key} onBlur=${() => offer(null)}></textarea>
      ${options.length > 0 && html`<ul id="completions" role="listbox" aria-label="completions">${options.map((option, place) => html`
        <li id=${`completion-${place}`} role="option" aria-selected=${place === chosen} onMouseDown=${(event) => { event.preventDefault(); take(option); }}>
          ${option.text} <small>${option.kind}</small></li>`)}</ul>`}
    </div>
    <p class="tools"><button data-do="run" class="primary" onClick=${() => onRun(box.current.value)}>run</button> <small>Ctrl Enter runs, Tab completes</small></p>`;
}

/** A value of an answer: transactions are links to the log, ids to rows, if all are of one table. */
function AnswerCell({ link, name, value, of }) {
  if (value == null) return html`<span class="null">null</span>`;
  if (name === 'txid' && Number.isSafeInteger(value)) return html`<a href=${writeLink({ ...link, view: 'log', at: value })}>${value}</a>`;
  if (name === 'id' && of && /^\d+$/.test(value)) return html`<a href=${writeLink({ ...link, view: 'row', table: of, id: value })}>${String(value)}</a>`;
  const said = unseen(String(value));
  return html`<span class=${said && 'unseen'} data-said=${said} title=${said}>${cut(String(value), 1000)}</span>`;
}

function Answer({ model, answer }) {
  const { fields, rows, txid, moment, milliseconds } = answer;
  const [said, say] = useState('');
  const of = useMemo(() => onlyTable(model.catalog, model.link.sql), [answer]);
  const numeric = useMemo(() => new Set(fields.map((it) => it.key).filter((key) => rows.some((row) => isNumber(row[key])))), [answer]);
  const [kind, x, y] = (model.link.chart || ',,').split(',').map(decodeURIComponent);
  const across = fields.some((it) => it.key === x) ? x : fields[0]?.key;
  const up = numeric.has(y) ? y : [...numeric].find((key) => key !== across) ?? [...numeric][0];
  const draw = (change) => {
    const wanted = { kind, x: across, y: up, ...change };
    model.want({ chart: wanted.kind && [wanted.kind, wanted.x, wanted.y].map(encodeURIComponent).join(',') }, true);
  };
  const select = (label, value, keys, name) => html`<label>${label} <select value=${value} onChange=${(event) => draw({ [name]: event.target.value })}>
    ${keys.map((key) => html`<option value=${key}>${key || 'none'}</option>`)}</select></label>`;
  const take = async (format) => {
    await copy(format, fields, rows);
    say(`${number(rows.length)} rows copied as ${format}`);
  };
  return html`
    <div class="tools" data-answer=${rows.length}>
      <span>${number(rows.length)} row${rows.length === 1 ? '' : 's'} · ${moment ? `:moment is ${moment}` : `asked at transaction ${number(txid)}`} · ${milliseconds.toFixed(0)} ms</span>
      ${rows.length > 0 && html`
        <span class="copies">copy ${Object.keys(formats).map((it) => html`<button onClick=${() => take(it)}>${it}</button>`)}</span>
        <span class="copies">save ${Object.keys(formats).map((it) => html`<button aria-label=${`save ${it}`} onClick=${() => save(it, 'answer', fields, rows)}>${it}</button>`)}</span>
        <span role="status">${said}</span>
        ${numeric.size > 0 && select('chart', kind, ['', ...KINDS], 'kind')}
        ${kind && numeric.size > 0 && html`${select('across', across, fields.map((it) => it.key), 'x')} ${select('up', up, [...numeric], 'y')}`}`}
    </div>
    ${KINDS.includes(kind) && up && html`<${Chart} kind=${kind} rows=${rows} x=${across} y=${up} />`}
    ${rows.length > 0 && html`<div class="answer" tabindex="0" role="region" aria-label="answer"><table><thead><tr>${fields.map((it) => html`<th scope="col">${it.key}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, MOST).map((row) => html`<tr>${fields.map(({ key }) => html`
        <td class=${numeric.has(key) ? 'number' : ''}><${AnswerCell} link=${model.link} name=${key} value=${row[key]} of=${of} /></td>`)}</tr>`)}</tbody></table></div>`}
    ${rows.length > MOST && html`<p>The first ${number(MOST)} rows are shown; copies and files have all.</p>`}`;
}
