// Requests to the server of this page. Every answer is bounded by what is asked for.

export const name = decodeURIComponent(location.pathname.split('/')[2] ?? '');
const base = `/v1/${encodeURIComponent(name)}`;

/** How many requests were made, the newest of them, and those that have no answer yet: for tests and for the curious. */
export const asked = { count: 0, paths: [], open: new Set() };

export class Refused extends Error {
  constructor(status, error, message) {
    super(message);
    this.status = status;
    this.error = error;
  }
}

function tail(parameters) {
  const given = Object.entries(parameters ?? {}).filter(([, value]) => value != null);
  const text = new URLSearchParams(given).toString();
  return text && `?${text}`;
}

export function address(path, parameters) {
  return base + path + tail(parameters);
}

async function request(path, options) {
  asked.count += 1;
  asked.paths.push(path);
  if (asked.paths.length > 1000) asked.paths.shift();
  const open = { path, begun: Math.round(performance.now()) };
  asked.open.add(open);
  try {
    return await answered(path, options);
  } finally {
    asked.open.delete(open);
  }
}

async function answered(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, 'unreachable', 'the server does not answer: is it still running?');
  }
  const text = await answer.text();
  if (answer.ok) return { text, headers: answer.headers };
  let refusal = {};
  try { refusal = JSON.parse(text); } catch { /* it has no reason */ }
  throw new Refused(answer.status, refusal.error, refusal.message ?? `status ${answer.status}`);
}

/** A number that the browser would write otherwise, as 9007199254740993, 1e300 or -0.0: its text. */
export class Written {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }

  valueOf() {
    return Number(this.text);
  }

  toJSON() {
    return JSON.rawJSON?.(this.text) ?? this.text;
  }
}

export const isNumber = (value) => typeof value === 'number' || value instanceof Written;

const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
// Half of a pair, which no text of a database has.
const MARK = '\ud800';

/** Reads JSON; each number stays as the server wrote it. */
export function parse(text) {
  let isMarked = false;
  const marked = text.replace(tokens, (token) => {
    if (token.startsWith('"') || String(Number(token)) === token) return token;
    isMarked = true;
    return `"${MARK}${token}"`;
  });
  const written = (_, value) => (typeof value === 'string' && value.startsWith(MARK) ? new Written(value.slice(1)) : value);
  return JSON.parse(marked, isMarked ? written : undefined);
}

export async function get(path, parameters, signal) {
  return parse((await request(address(path, parameters), { signal })).text);
}

/** Reads an answer with an object a line. */
export async function lines(path, parameters, signal) {
  const { text } = await request(address(path, parameters), { signal });
  return text.split('\n').filter(Boolean).map(parse);
}

/** Reads an answer with an object a line, and tells of each as it comes. */
export async function each(path, parameters, tell) {
  asked.count += 1;
  const answer = await fetch(address(path, parameters));
  if (!answer.ok) throw new Refused(answer.status, null, `status ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    const all = (rest + (value ?? '')).split('\n');
    rest = done ? '' : all.pop();
    all.filter(Boolean).forEach((line) => tell(parse(line)));
    if (done) return;
  }
}

export async function post(path, body) {
  const headers = { 'Content-Type': 'application/json' };
  return parse((await request(base + path, { method: 'POST', headers, body: JSON.stringify(body) })).text);
}

// An answer's values are no objects, so that its keys can be told from its texts. Objects don't keep the order of keys
// that look like numbers.
const member = /"((?:[^"\\]|\\.)*)":(?:"(?:[^"\\]|\\.)*"|[^,}]*)/g;

/** Asks in SQL; returns `{ fields, rows, txid }`. */
export async function query(sql, params, signal) {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/x-ndjson' };
  const body = JSON.stringify({ sql, params });
  const { text, headers: of } = await request(`${base}/sql`, { method: 'POST', headers, body, signal });
  const all = text.split('\n').filter(Boolean);
  const fields = [...(all[0] ?? '').matchAll(member)].map(([, key]) => ({ key: JSON.parse(`"${key}"`), type: 'string' }));
  return { fields, rows: all.map(parse), txid: Number(of.get('Annals-Txid')) };
}

/** After a refusal so many milliseconds pass before it is asked again, and then twice as many each time, up to the most. */
const [SOON, LATE] = [250, 30_000];

/** Calls `news(txid)` for what is committed, and for the last transaction at the beginning, until the returned function is called. */
export function follow(news) {
  let events;
  let [timer, wait] = [null, SOON];
  const tell = (event) => {
    wait = SOON;
    news(Number.parseInt(event.lastEventId, 10));
  };
  const ask = () => {
    // Only that something was committed: not the rows, of which there may be many. The last transaction is told first, so
    // nothing is missed, and there is no place that could have been forgotten.
    events = new EventSource(address('/changes', { rows: 0 }));
    events.onmessage = tell;
    events.addEventListener('caught-up', tell);
    // After a cut the browser asks again by itself, and never after a refusal.
    events.onerror = () => {
      if (events.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(ask, wait);
      wait = Math.min(2 * wait, LATE);
    };
  };
  ask();
  return () => {
    clearTimeout(timer);
    events.close();
  };
}

/** The path of a table below the database's URL. */
export const tablePath = (table) => `/t/${encodeURIComponent(table)}`;
