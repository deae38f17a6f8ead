// Simple charts of an answer: bars, a line, or points.

import { html } from './vendor/preact.js';
import { number } from './moment.js';
import { isNumber } from './net.js';

/** So many points are drawn. */
const MOST = 2000;
const [WIDE, TALL, LEFT, RIGHT, TOP, BOTTOM] = [800, 300, 70, 10, 10, 40];
export const KINDS = ['bars', 'line', 'points'];

/** Returns some round numbers between two. */
export function ticks(low, high, count = 5) {
  const rough = (high - low || 1) / count;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((it) => it * ten).find((it) => it >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

const isTime = (value) => typeof value === 'string' && /^\d{4}-\d\d(-\d\d|$)/.test(value);

/** Returns where the values of a column are from left to right, and what is written below. */
function across(values, kind) {
  const room = WIDE - LEFT - RIGHT;
  const areTimes = values.every(isTime);
  if (kind !== 'bars' && (areTimes || values.every(isNumber))) {
    const numbers = areTimes ? values.map((it) => Date.parse(it)) : values.map(Number);
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const at = (value) => LEFT + (room * (value - low)) / (high - low || 1);
    const text = (value) => (areTimes ? new Date(value).toISOString().slice(0, 10) : number(value));
    return { places: numbers.map(at), step: 0, labels: ticks(low, high).map((value) => [at(value), text(value)]) };
  }
  const step = room / values.length;
  const places = values.map((_, place) => LEFT + (place + 0.5) * step);
  const every = Math.ceil(values.length / 14);
  const labels = values.flatMap((value, place) => (place % every ? [] : [[places[place], String(value ?? 'null').slice(0, 10)]]));
  return { places, step, labels };
}

/** Draws a column of numbers over another column. */
export function Chart({ kind, rows, x, y }) {
  const drawn = rows.filter((row) => isNumber(row[y])).slice(0, MOST);
  if (!drawn.length) return html`<p class="none">Column ${y} has no numbers to draw.</p>`;
  const heights = drawn.map((row) => Number(row[y]));
  const [low, high] = [Math.min(0, ...heights), Math.max(0, ...heights)];
  const up = (value) => TOP + ((high - value) / (high - low || 1)) * (TALL - TOP - BOTTOM);
  const { places, step, labels } = across(drawn.map((row) => row[x]), kind);
  const points = drawn.map((row, place) => ({ left: places[place], top: up(row[y]), title: `${row[x]}: ${row[y]}` }));
  const line = [...points].sort((one, other) => one.left - other.left).map((it) => `${it.left.toFixed(1)},${it.top.toFixed(1)}`);
  return html`
    <svg class="chart" viewBox=${`0 0 ${WIDE} ${TALL}`} role="img" aria-label=${`${y} over ${x}, ${kind}`} data-chart=${kind}>
      ${ticks(low, high).map((value) => html`<path class="rule" d=${`M${LEFT},${up(value)} H${WIDE - RIGHT}`} />
        <text class="left" x=${LEFT - 6} y=${up(value) + 4}>${number(value)}</text>`)}
      ${labels.map(([left, text]) => html`<text class="below" x=${left} y=${TALL - BOTTOM + 18}>${text}</text>`)}
      <text class="below" x=${WIDE / 2} y=${TALL - 4}>${x}</text>
      ${kind === 'line' && html`<polyline points=${line.join(' ')} />`}
      ${kind === 'bars' && points.map((it) => html`<rect class="bar" x=${it.left - step * 0.4} width=${Math.max(step * 0.8, 0.5)}
        y=${Math.min(it.top, up(0))} height=${Math.abs(it.top - up(0))}><title>${it.title}</title></rect>`)}
      ${kind === 'points' && points.map((it) => html`<circle cx=${it.left} cy=${it.top} r="3"><title>${it.title}</title></circle>`)}
    </svg>
    ${rows.length > MOST && html`<p>The first ${number(MOST)} of ${number(rows.length)} rows are drawn.</p>`}`;
}
