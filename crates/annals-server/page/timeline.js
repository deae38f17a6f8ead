// Time: all transactions as a slider, with how much happened when.

import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { endOfDay, number, showTime } from './moment.js';

const COLOURS = ['#3b76c4', '#d9822b', '#3d9970', '#b4436c', '#7a5ccc', '#8c7a2e', '#2aa1b3', '#a05a2c'];

export function colourOf(model, table) {
  const place = model.catalog?.byName.get(table)?.place;
  return place == null ? '#888888' : COLOURS[place % COLOURS.length];
}

function draw(canvas, model) {
  const { activity } = model;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!activity || !width) return;
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  const [first, last] = [model.first, Math.max(model.last, model.first + 1)];
  const x = (txid) => ((txid - first) / (last - first)) * width;
  const sum = (bucket) => Object.values(bucket.changes).reduce((all, count) => all + count, 0);
  const most = activity.buckets.reduce((all, bucket) => Math.max(all, sum(bucket)), 1);
  // Most transactions are small: the logarithm shows them beside a large import.
  const tall = (count) => (Math.log1p(count) / Math.log1p(most)) * (height - 10);
  for (const bucket of activity.buckets) {
    // The slider is in the middle of what its transaction changed.
    const [left, right] = [x(bucket.first - 0.5), x(bucket.last + 0.5)];
    const all = sum(bucket);
    let base = height;
    for (const [table, count] of Object.entries(bucket.changes)) {
      const part = tall(all) * (count / all || 0);
      pen.fillStyle = colourOf(model, table);
      pen.globalAlpha = !model.link.table || table === model.link.table ? 1 : 0.35;
      pen.fillRect(left, base - part, Math.max(right - left, 1), part);
      base -= part;
    }
  }
  pen.globalAlpha = 1;
  const front = getComputedStyle(canvas).color;
  const marks = { schema: '#c0392b', erasure: front, valid_data: '#27ae60', comment: '#999999' };
  for (const mark of activity.marks) {
    pen.fillStyle = marks[mark.kind];
    pen.fillRect(Math.min(x(mark.txid), width - 2), 0, mark.kind === 'comment' ? 1 : 2, mark.kind === 'comment' ? 4 : 8);
  }
  const line = (txid, colour) => {
    pen.fillStyle = colour;
    pen.fillRect(Math.min(x(txid), width - 2), 0, 2, height);
  };
  if (model.link.pin != null) line(model.link.pin, '#d9822b');
  line(model.link.at ?? model.last, front);
}

const KINDS = { schema: 'schema', erasure: 'erased', valid_data: 'valid data' };

function changes(found) {
  const count = found.changes.length + (found.left_out ?? 0);
  return `${number(count)} change${count === 1 ? '' : 's'}`;
}

export function Timeline({ model, zone }) {
  const canvas = useRef(null);
  const [isPlaying, play] = useState(false);
  useEffect(() => draw(canvas.current, model));
  useEffect(() => {
    const resized = new ResizeObserver(() => draw(canvas.current, model));
    resized.observe(canvas.current);
    return () => resized.disconnect();
  }, []);
  useEffect(() => {
    if (!isPlaying) return undefined;
    if (model.txid >= model.last) {
      play(false);
      return undefined;
    }
    const timer = setTimeout(() => model.wantTxid(model.txid + 1), 500);
    return () => clearTimeout(timer);
  });
  const { found, txid, link } = model;
  const at = link.at ?? model.last;
  const marks = (model.activity?.marks ?? []).filter((mark) => mark.txid === at && mark.kind !== 'comment');
  const isPast = at < model.last;
  return html`
    <section class="timeline" aria-label="time">
      <div class="plot">
        <canvas ref=${canvas} aria-hidden="true"></canvas>
        <input type="range" aria-label="transaction" min=${model.first} max=${Math.max(model.last, model.first)}
          value=${at} aria-valuetext=${`transaction ${at}`}
          onInput=${(event) => model.wantTxid(Number(event.target.value))} />
      </div>
      <div class="controls">
        <button title="earliest (Home)" aria-label="earliest" onClick=${() => model.wantTxid(model.first)}>⇤</button>
        <button title="one day back (shift ←)" aria-label="one day back" onClick=${() => model.stepDay(-1)}>«</button>
        <button title="one transaction back (←)" aria-label="one transaction back" onClick=${() => model.wantTxid(at - 1)}>‹</button>
        <button title="play (P)" aria-label=${isPlaying ? 'pause' : 'play'} aria-pressed=${isPlaying} data-do="play"
          onClick=${() => play(!isPlaying)}>${isPlaying ? '❚❚' : '▶'}</button>
        <button title="one transaction on (→)" aria-label="one transaction on" onClick=${() => model.wantTxid(at + 1)}>›</button>
        <button title="one day on (shift →)" aria-label="one day on" onClick=${() => model.stepDay(1)}>»</button>
        <button title="now (End)" aria-label="now" onClick=${() => model.wantTxid(model.last)}>⇥</button>
        <input type="date" aria-label="day" title="the end of a day" value=${found && txid === at ? showTime(found.time, zone).slice(0, 10) : ''}
          onChange=${(event) => event.target.value && model.wantTime(endOfDay(event.target.value, zone))} />
        <button data-do="pin" aria-pressed=${link.pin != null} title="pin this moment to compare with (M)"
          onClick=${() => model.want({ pin: link.pin == null ? at : null })}>${link.pin == null ? 'pin' : `pinned: ${number(link.pin)}`}</button>
        <button data-do="follow" aria-pressed=${link.follow} title="follow what is committed (F)"
          onClick=${() => model.want({ follow: !link.follow, at: null })}>follow</button>
        <output class=${isPast ? 'past' : ''}>
          <b>transaction ${number(at)}</b> of ${number(model.last)}
          ${found && txid === at && html`${' · '}<time>${showTime(found.time, zone)}</time>
            ${' · '}${changes(found)}
            ${found.comment && html`${' · '}<q>${found.comment}</q>`}`}
          ${marks.map((mark) => html`${' · '}<span class=${`mark ${mark.kind}`}>${KINDS[mark.kind]}${mark.text && `: ${mark.text}`}</span>`)}
          ${model.activity && model.activity.known < model.activity.last && !model.activity.failure
            && html`${' · '}reading the journal: ${Math.floor((100 * model.activity.known) / model.activity.last)} %`}
        </output>
      </div>
    </section>`;
}
