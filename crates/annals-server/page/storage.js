// What the database takes on the disk, and whether it is whole.

import { html, useLayoutEffect, useState } from './vendor/preact.js';
import { each, get } from './net.js';
import { bytes, number } from './moment.js';
import { colourOf } from './plot.js';
import { asking } from './ready.js';

export function StorageView({ model }) {
  const [found, setFound] = useState(null);
  const [progress, setProgress] = useState(null);
  const fail = (error) => model.fail(error);
  // What a check has found meanwhile is newer.
  const first = async (signal) => {
    const answer = await get('/storage', {}, signal);
    setFound((known) => known ?? answer);
  };
  useLayoutEffect(() => asking('storage', first, fail), []);
  const check = async () => {
    setProgress({ done: 0, total: 1 });
    try {
      await each('/storage', { check: true }, (line) => {
        if (line.error) model.fail(line.error);
        else if (line.segments) setFound(line);
        else setProgress(line);
      });
    } catch (error) {
      fail(error);
    }
    setProgress(null);
  };
  return html`
    <article class="storage"><h2>Storage</h2>
      ${found && html`<${Files} found=${found} />`}
      ${found && html`<${Tables} model=${model} journal=${journalOf(found)} />`}
      ${found?.segments.length > 0 && html`<${Segments} list=${found.segments} />`}
      <h3>Check</h3>
      <p><button data-do="check" class="primary" disabled=${progress != null} onClick=${check}>check the file</button>${' '}
        ${progress ? html`<progress aria-label="check" value=${progress.done} max=${progress.total}></progress> ${Math.floor((100 * progress.done) / progress.total)} %`
          : !found?.check && 'It reads the journal once, and verifies each frame of it, the image and the history index.'}</p>
      ${found?.check && html`<${Result} check=${found.check} />`}
    </article>`;
}

const Share = ({ part, of }) => html`<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="part" width=${(100 * part) / (of || 1)} height="8" /></svg>`;

const journalOf = (found) => found.segments.reduce((sum, segment) => sum + segment.bytes, 0);

/** What takes the bytes. */
function Files({ found }) {
  const journal = journalOf(found);
  const all = journal + (found.image_bytes ?? 0);
  const line = (what, size, why, part) => html`<tr><th scope="row">${what}</th><td class="number">${bytes(size)}</td>
    <td>${part && html`<${Share} part=${size} of=${all} />`}</td><td>${why}</td></tr>`;
  return html`<table class="sizes"><tbody>
    ${line('journal', journal, `the whole history, in ${found.segments.length} file${found.segments.length === 1 ? '' : 's'}: the truth`, true)}
    ${found.image_bytes != null && line('image', found.image_bytes, 'pages of the state and the history index, made from the journal: safe to delete', true)}
    ${found.tail_bytes != null && line('tail', found.tail_bytes, 'of the journal, not yet in the image: replayed when the database is opened')}
    ${found.cache_bytes != null && line('pages in memory', found.cache_bytes, 'of the image')}
  </tbody></table>`;
}

function Segments({ list }) {
  const all = list.reduce((sum, segment) => sum + segment.bytes, 0);
  return html`<h3>Segments of the journal</h3>
    <table class="segments"><thead><tr><th>number</th><th>bytes</th><th>share</th><th>transactions</th></tr></thead>
      <tbody>${list.map((it) => html`<tr><td>${it.number}</td><td class="number">${bytes(it.bytes)}</td><td><${Share} part=${it.bytes} of=${all} /></td>
        <td>${number(it.first)} to ${number(it.last)}</td></tr>`)}</tbody></table>`;
}

function Result({ check }) {
  return html`<div class=${check.damage ? 'error' : 'ok'} data-check=${check.damage ? 'damaged' : 'ok'}>
    <p><strong>${check.damage ?? 'Every frame verifies.'}</strong></p>
    ${check.notes.map((note) => html`<p>note: ${note}</p>`)}
    <p>Older states that the image keeps, for quick jumps: after ${check.key_frames.map(number).join(', ') || 'none'}.
      The history index knows ${check.history_index == null ? 'nothing' : `transactions up to ${number(check.history_index)}, in ${number(check.history_entries)} entries`}.</p>
  </div>`;
}

/** Whose bytes the journal has. */
function Tables({ model, journal }) {
  const { tables, known, last, first, failure } = model.activity ?? {};
  if (!tables?.length) return null;
  const rest = Math.max(0, journal - tables.reduce((sum, it) => sum + it.bytes, 0));
  const others = `the rest: heads of frames, comments, commands of the schema${first > 1 ? ', and the state with which the kept history begins' : ''}`;
  return html`<h3>What takes the bytes of the journal</h3>
    <table class="changes"><thead><tr><th>table</th><th>bytes</th><th>share</th><th>changes of rows</th></tr></thead><tbody>
      ${tables.map((it) => html`<tr data-taken=${it.table}><th scope="row"><i style=${{ background: colourOf(model, it.table) }}></i>${it.table || 'other or dropped tables'}</th>
        <td class="number" data-bytes=${it.bytes}>${bytes(it.bytes)}</td><td><${Share} part=${it.bytes} of=${journal} /></td><td class="number">${number(it.changes)}</td></tr>`)}
      ${known === last && html`<tr><th scope="row">${others}</th><td class="number">${bytes(rest)}</td><td><${Share} part=${rest} of=${journal} /></td><td></td></tr>`}
    </tbody></table>
    <p>Each table's events, and the blobs in them. The image isn't divided: its pages are shared by all states that it keeps.
      ${known < last && ` Of transactions up to ${number(known)}${failure ? `; the rest can't be read: ${failure}` : ': the rest is being read'}.`}</p>`;
}
