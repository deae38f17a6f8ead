// The plot of activity: how much of each table was changed when, marks, and the moments that are shown.

import { showTime } from './moment.js';

const COLOURS = ['#4a7fd0', '#e08a3c', '#3fa37a', '#c2527d', '#8468d4', '#9a8636', '#2fa6b5', '#b06a3c'];
/** The heights of the marks and of the dates, and the least distance of two dates. */
const [MARKS, DATES, APART] = [8, 17, 64];

export function colourOf(model, table) {
  const place = model.catalog?.byName.get(table)?.place;
  return place == null ? '#888888' : COLOURS[place % COLOURS.length];
}

const sum = (bucket) => Object.values(bucket.changes).reduce((all, count) => all + count, 0);

/** Returns which part of a time is written below the plot: years, months, days or minutes, as the span wants. */
function partOf(buckets) {
  const [from, to] = [buckets[0], buckets.at(-1)].map((it) => Date.parse(it?.time ?? 0));
  const days = (to - from) / 86_400_000;
  return days > 800 ? [0, 4] : days > 60 ? [0, 7] : days > 2 ? [5, 10] : [11, 16];
}

/** The dates of the buckets, of each activity: they are written at each step. */
const texts = new WeakMap();

function textsOf(activity, zone) {
  const known = texts.get(activity);
  if (known?.zone === zone) return known.list;
  const part = partOf(activity.buckets);
  const list = activity.buckets.map((bucket) => showTime(bucket.time, zone).slice(...part));
  texts.set(activity, { zone, list });
  return list;
}

/** Returns the dates below the plot: where each begins, but for those that are too near. */
function dates(activity, x, zone) {
  const list = textsOf(activity, zone);
  let [before, last] = [null, -APART];
  return activity.buckets.flatMap((bucket, place) => {
    const text = list[place];
    const left = x(bucket.first);
    if (text === before || left - last < APART) return [];
    [before, last] = [text, left];
    return [[left, text]];
  });
}

/** Draws all of it; `model` says which moments are shown. */
export function draw(canvas, model, zone) {
  const { activity } = model;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!activity || !width) return;
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`);
  const [first, last] = [model.first, Math.max(model.last, model.first + 1)];
  const x = (txid) => ((txid - first) / (last - first)) * width;
  const floor = height - DATES;
  const { pin } = model.link;
  const at = model.link.at ?? model.last;
  if (pin != null) {
    pen.fillStyle = colour('changed');
    pen.fillRect(x(Math.min(pin, at)), 0, Math.abs(x(at) - x(pin)), floor);
  }
  bars(pen, model, { x, floor });
  pen.fillStyle = colour('edge');
  pen.fillRect(0, floor, width, 1);
  pen.font = '11px system-ui, sans-serif';
  for (const [left, text] of dates(activity, x, zone)) {
    pen.fillStyle = colour('edge');
    pen.fillRect(left, floor, 1, 5);
    pen.fillStyle = colour('dim');
    if (left + pen.measureText(text).width + 4 < width) pen.fillText(text, left + 4, height - 4);
  }
  const marks = { schema: colour('accent'), erasure: colour('error'), valid_data: colour('inserted-edge'), comment: colour('dim') };
  for (const mark of activity.marks) {
    pen.fillStyle = marks[mark.kind];
    pen.fillRect(Math.min(x(mark.txid), width - 2), 0, 2, mark.kind === 'comment' ? MARKS / 2 : MARKS);
  }
  if (pin != null) head(pen, { left: x(pin), width, floor }, colour('changed-edge'));
  head(pen, { left: x(at), width, floor }, colour('front'));
}

function bars(pen, model, { x, floor }) {
  const { activity, link } = model;
  const most = activity.buckets.reduce((all, bucket) => Math.max(all, sum(bucket)), 1);
  // Most transactions are small: the logarithm shows them beside a large import.
  const tall = (count) => (Math.log1p(count) / Math.log1p(most)) * (floor - MARKS - 4);
  for (const bucket of activity.buckets) {
    // The slider is in the middle of what its transaction changed.
    const [left, right] = [x(bucket.first - 0.5), x(bucket.last + 0.5)];
    const all = sum(bucket);
    let base = floor;
    for (const [table, count] of Object.entries(bucket.changes)) {
      const part = tall(all) * (count / all || 0);
      pen.fillStyle = colourOf(model, table);
      pen.globalAlpha = !link.table || table === link.table ? 1 : 0.3;
      pen.fillRect(left, base - part, Math.max(right - left - 0.4, 1), part);
      base -= part;
    }
  }
  pen.globalAlpha = 1;
}

/** A moment: a line with a knob to take. */
function head(pen, { left, width, floor }, colour) {
  const middle = Math.min(Math.max(left, 5), width - 5);
  pen.fillStyle = colour;
  pen.fillRect(middle - 1, 0, 2, floor + 3);
  pen.beginPath();
  pen.arc(middle, floor, 5, 0, 2 * Math.PI);
  pen.fill();
}
