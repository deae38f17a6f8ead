// Time: all transactions as a slider, with how much happened when.

import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { endOfDay, number, plural, showTime } from './moment.js';
import { colourOf, draw } from './plot.js';

const KINDS = { schema: 'schema', erasure: 'erased', valid_data: 'valid data' };
/** So many tables and marks are named over a place of the plot. */
const NAMED = 5;

/** Plays while `isPlaying`: a transaction each half second, up to now. */
function usePlaying(model) {
  const [isPlaying, play] = useState(false);
  useEffect(() => {
    if (!isPlaying) return undefined;
    if (model.txid >= model.last) {
      play(false);
      return undefined;
    }
    const timer = setTimeout(() => model.wantTxid(model.txid + 1), 500);
    return () => clearTimeout(timer);
  });
  return [isPlaying, play];
}

/** What a place of the plot has: its transactions, and how much they changed. */
function Tip({ model, zone, place }) {
  const { activity } = model;
  const txid = Math.round(model.first + place.share * (model.last - model.first));
  const bucket = activity?.buckets.find((it) => txid <= it.last);
  if (!bucket) return null;
  const tables = Object.entries(bucket.changes).sort(([, one], [, other]) => other - one);
  const marks = activity.marks.filter((it) => it.txid >= bucket.first && it.txid <= bucket.last && it.text)
    .sort((one, other) => (other.kind === 'comment') - (one.kind === 'comment'));
  const style = { left: `${place.share * 100}%`, transform: `translateX(-${place.share * 100}%)` };
  return html`<div class="tip" style=${style} aria-hidden="true">
    <p><b>${showTime(bucket.time, zone).slice(0, 16)}</b> · ${bucket.first === bucket.last ? `transaction ${number(bucket.first)}` : `transactions ${number(bucket.first)} to ${number(bucket.last)}`}</p>
    ${tables.slice(0, NAMED).map(([table, count]) => html`<p><i style=${{ background: colourOf(model, table) }}></i>${table || 'other tables'}: ${plural(count, 'change')}</p>`)}
    ${marks.slice(0, NAMED).map((it) => html`<p>${KINDS[it.kind] ?? 'comment'}: ${it.text.slice(0, 80)}</p>`)}
  </div>`;
}

function Plot({ model, zone }) {
  const canvas = useRef(null);
  const [place, point] = useState(null);
  const at = model.link.at ?? model.last;
  useEffect(() => draw(canvas.current, model, zone));
  useEffect(() => {
    const resized = new ResizeObserver(() => draw(canvas.current, model, zone));
    resized.observe(canvas.current);
    return () => resized.disconnect();
  }, [zone]);
  const moved = (event) => {
    const { left, width } = canvas.current.getBoundingClientRect();
    point({ share: Math.min(1, Math.max(0, (event.clientX - left) / width)) });
  };
  return html`<div class="plot" onPointerMove=${moved} onPointerLeave=${() => point(null)}>
    <canvas ref=${canvas} aria-hidden="true"></canvas>
    <input type="range" aria-label="transaction" min=${model.first} max=${Math.max(model.last, model.first)}
      value=${at} aria-valuetext=${`transaction ${at}`}
      onInput=${(event) => model.wantTxid(Number(event.target.value))} />
    ${place && html`<${Tip} model=${model} zone=${zone} place=${place} />`}
  </div>`;
}

/** A text of a button that is as wide as its longest one: so nothing beside it moves. */
export const steady = (text, longest) => html`<span class="steady"><span>${text}</span><span aria-hidden="true">${longest}</span></span>`;

/** The name of a pinned moment: its time, if that is known. */
export const nameOf = (pinned, zone) => (pinned.time ? showTime(pinned.time, zone) : `transaction ${number(pinned.from)}`);

/** Says which moment is shown, in words: always two lines, so that nothing below them moves. */
function Said({ model, zone }) {
  const { found, txid, link, activity } = model;
  const at = link.at ?? model.last;
  const isHere = found && txid === at;
  const marks = (activity?.marks ?? []).filter((mark) => mark.txid === at && mark.kind !== 'comment');
  const isPast = at < model.last;
  const [day, time] = isHere ? showTime(found.time, zone).split(' ') : [];
  const isReading = activity && activity.known < activity.last && !activity.failure;
  return html`<output class=${isPast ? 'past' : ''}>
    <span class="line"><span class="past-or-now">${isPast ? 'past' : 'now'}</span>
    ${isHere && html`<time class="when">${day} <small>${time}</small></time>`}</span>
    <span class="line more" title=${isHere && found.comment}>${link.pin === at && html`<b class="hint">now move to another moment</b> `}transaction <b>${number(at)}</b> of ${number(model.last)}
    ${isHere && html`${' · '}${plural(found.changes.length + (found.left_out ?? 0), 'change')}
      ${found.comment && html`${' · '}<q>${found.comment}</q>`}`}
    ${marks.slice(0, 2).map((mark) => html`${' '}<span class=${`mark ${mark.kind}`}>${KINDS[mark.kind]}${mark.text && `: ${mark.text}`}</span>`)}
    ${marks.length > 2 && html`${' '}<span class="mark">and ${plural(marks.length - 2, 'more mark')}</span>`}
    ${isReading && html`${' · '}reading the journal: ${Math.floor((100 * activity.known) / activity.last)} %`}
    ${activity?.failure && html`${' · '}the plot has a gap: ${activity.failure}`}</span>
  </output>`;
}

export function Timeline({ model, zone }) {
  const [isPlaying, play] = usePlaying(model);
  const { found, txid, link, pinned } = model;
  const at = link.at ?? model.last;
  const step = (sign, what, key, go) => html`<button title=${`${what} (${key})`} aria-label=${what} onClick=${go}>${sign}</button>`;
  return html`
    <section class="timeline" aria-label="time">
      <div class="controls">
        <${Said} model=${model} zone=${zone} />
        <div class="steps" role="group" aria-label="steps">
          ${step('⇤', 'earliest', 'Home', () => model.wantTxid(model.first))}
          ${step('«', 'one day back', 'shift ←', () => model.stepDay(-1))}
          ${step('‹', 'one transaction back', '←', () => model.wantTxid(at - 1))}
          <button title="play (P)" aria-label=${isPlaying ? 'pause' : 'play'} aria-pressed=${isPlaying} data-do="play"
            onClick=${() => play(!isPlaying)}>${isPlaying ? '❚❚' : '▶'}</button>
          ${step('›', 'one transaction on', '→', () => model.wantTxid(at + 1))}
          ${step('»', 'one day on', 'shift →', () => model.stepDay(1))}
          ${step('⇥', 'now', 'End', () => model.wantTxid(model.last))}
        </div>
        <label class="day">end of <input type="date" aria-label="end of day" title="go to the state at the end of a day" value=${found && txid === at ? showTime(found.time, zone).slice(0, 10) : ''}
          onChange=${(event) => event.target.value && model.wantTime(endOfDay(event.target.value, zone))} /></label>
        <button data-do="pin" aria-pressed=${link.pin != null} title=${link.pin == null ? 'keep this moment, and colour what differs from it at others (M)' : `transaction ${number(link.pin)}: compare no more (M)`}
          onClick=${() => model.want({ pin: link.pin == null ? at : null })}>${steady(link.pin == null ? 'compare from here' : `comparing with ${pinned?.time ? nameOf(pinned, zone).slice(0, 10) : number(link.pin)} ✕`, 'comparing with 0000-00-00 ✕')}</button>
        <button data-do="follow" aria-pressed=${link.follow} title="show what is committed, as it happens (F)"
          onClick=${() => model.want({ follow: !link.follow, at: null })}>follow live</button>
      </div>
      <${Plot} model=${model} zone=${zone} />
    </section>`;
}
