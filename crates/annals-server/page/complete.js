// What may follow in a query: names of tables, their columns, and words of SQL.

const WORDS = ['SELECT', 'FROM', 'WHERE', 'JOIN', 'LEFT JOIN', 'ON', 'GROUP BY', 'ORDER BY', 'LIMIT', 'HAVING', 'DISTINCT',
  'AND', 'OR', 'NOT', 'IN', 'LIKE', 'BETWEEN', 'IS NULL', 'AS', 'DESC', 'WITH', 'UNION ALL', 'CASE', 'WHEN', 'THEN', 'ELSE', 'END',
  'count(*)', 'sum(', 'avg(', 'min(', 'max(', 'annals_time(', ':moment'];
/** What SQLite needs quotes for, of the names that tables are likely to have. */
const RESERVED = new Set(['order', 'group', 'table', 'index', 'select', 'from', 'where', 'transaction', 'references', 'values', 'check',
  'default', 'to', 'set', 'add', 'all', 'case', 'limit', 'union', 'join', 'on', 'in', 'is', 'not', 'null', 'primary', 'unique']);
/** So many are offered. */
const MOST = 10;

const version = ['id', 'txid', 'time', 'comment', 'kind'];
const both = (keys) => keys.flatMap((key) => [`old_${key}`, `new_${key}`]);
/** The tables beside each table: how they are called, and the columns that they have. */
const BESIDE = {
  _at: ['(:moment)', (keys) => ['id', ...keys]],
  _history: ['', (keys) => [...version, ...both(keys)]],
  _changes: ['(', (keys) => ['id', 'kind', ...both(keys)]],
  _blame: ['(', () => ['id', 'field', 'value', ...version.slice(1)]],
};
const OWN = {
  annals_log: ['txid', 'time', 'comment', 'changes'],
  annals_schema: ['kind', 'table', 'name', 'type', 'nullable', 'default', 'references', 'unique', 'rows'],
};

export const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) && !RESERVED.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`);

function columnsOf(catalog, name) {
  const keysOf = (table) => catalog.byName.get(table)?.fields.map((field) => field.key);
  if (Object.hasOwn(OWN, name)) return OWN[name];
  const keys = keysOf(name);
  if (keys) return ['id', ...keys];
  for (const [ending, [, columns]] of Object.entries(BESIDE)) {
    const of = name.endsWith(ending) && keysOf(name.slice(0, -ending.length));
    if (of) return columns(of);
  }
  return [];
}

/** Returns the only table whose rows a query asks for, now, then, or all of their versions; null if there are more. */
export function onlyTable(catalog, sql) {
  const of = (name) => [name, ...Object.keys(BESIDE).filter((it) => name.endsWith(it)).map((it) => name.slice(0, -it.length))];
  const all = new Set([...named(sql).values()].map((name) => of(name).find((it) => catalog.byName.has(it)) ?? null));
  return all.size === 1 ? [...all][0] : null;
}

/** Returns the tables that a query names: from how it calls them to their names. */
function named(sql) {
  const found = new Map();
  for (const [, plain, inQuotes, alias] of sql.matchAll(/\b(?:from|join)\s+(?:(\w+)|"([^"]+)")(?:\s*\([^)]*\))?(?:\s+(?:as\s+)?(\w+))?/gi)) {
    const name = plain ?? inQuotes;
    found.set(name, name);
    if (alias) found.set(alias, name);
  }
  return found;
}

/** Returns what may replace the word before the caret: `{ from, options: [{ text, kind }] }`. */
export function complete(catalog, sql, caret) {
  const [word] = sql.slice(0, caret).match(/:?\w*$/);
  const from = caret - word.length;
  const tables = named(sql);
  const [, of] = sql.slice(0, from).match(/(\w+)"?\.$/) ?? [];
  const isWanted = (text) => text.toLowerCase().startsWith(word.toLowerCase()) && text.toLowerCase() !== word.toLowerCase();
  const options = new Map();
  const offer = (text, kind) => {
    if (options.size < MOST && isWanted(text) && !options.has(text)) options.set(text, { text: kind === 'word' ? text : quotedCall(text), kind });
  };
  const columns = of ? columnsOf(catalog, tables.get(of) ?? of) : [...tables.values()].flatMap((name) => columnsOf(catalog, name));
  if (!of && word === '') return { from, options: [] };
  const isTable = /\b(from|join)\s+$/i.test(sql.slice(0, from));
  if (!isTable) columns.forEach((it) => offer(it, 'column'));
  if (!of) {
    for (const { name } of catalog.tables) {
      if (options.size >= MOST) break;
      offer(name, 'table');
      if (word.toLowerCase().startsWith(name.toLowerCase())) Object.entries(BESIDE).forEach(([ending, [call]]) => offer(name + ending + call, 'table'));
    }
    Object.keys(OWN).forEach((it) => offer(it, 'table'));
    if (!isTable) WORDS.forEach((it) => offer(it, 'word'));
  }
  return { from, options: [...options.values()] };
}

function quotedCall(text) {
  const [, name, call] = text.match(/^(.*?)(\(.*)?$/s);
  return quoted(name) + (call ?? '');
}
