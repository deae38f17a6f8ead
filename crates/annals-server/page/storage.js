// What the database takes on the disk, and whether it is whole.

import { html, useEffect, useState } from './vendor/preact.js';
import { get } from './net.js';
import { bytes, number } from './moment.js';

export function StorageView({ model }) {
  const [found, setFound] = useState(null);
  const [isChecking, setChecking] = useState(false);
  const ask = (parameters) => get('/storage', parameters).then(setFound).catch((error) => model.fail(error));
  useEffect(() => { ask(); }, []);
  const check = async () => {
    setChecking(true);
    await ask({ check: true });
    setChecking(false);
  };
  const result = found?.check;
  const journal = found?.segments.reduce((sum, segment) => sum + segment.bytes, 0) ?? 0;
  return html`
    <article class="storage"><h2>Storage</h2>
      ${found && html`<table><tbody>
        <tr><th>journal</th><td>${bytes(journal)} in ${found.segments.length} file${found.segments.length === 1 ? '' : 's'}</td></tr>
        <tr><th>image</th><td>${bytes(found.image_bytes)}</td></tr>
        <tr><th>journal after the image</th><td>${bytes(found.tail_bytes)}</td></tr>
        <tr><th>pages in memory</th><td>${bytes(found.cache_bytes)}</td></tr>
      </tbody></table>
      ${found.segments.length > 0 && html`<h3>Segments</h3><table><thead><tr><th>number</th><th>bytes</th><th>transactions</th></tr></thead>
        <tbody>${found.segments.map((it) => html`<tr><td>${it.number}</td><td>${bytes(it.bytes)}</td>
          <td>${number(it.first)} to ${number(it.last)}</td></tr>`)}</tbody></table>`}`}
      <p><button data-do="check" disabled=${isChecking} onClick=${check}>${isChecking ? 'checking ..' : 'check the file'}</button></p>
      ${result && html`<div class=${result.damage ? 'error' : 'ok'} data-check=${result.damage ? 'damaged' : 'ok'}>
        <p>${result.damage ?? 'Every frame verifies.'}</p>
        ${result.notes.map((note) => html`<p>note: ${note}</p>`)}
        <p>Older states that the image keeps: ${result.key_frames.map(number).join(', ') || 'none'}.
          The history index knows ${result.history_index == null ? 'nothing' : `transactions up to ${number(result.history_index)}`}.</p>
      </div>`}
      ${found && !result && !isChecking && html`<p>A check reads the whole journal once.</p>`}
    </article>`;
}
