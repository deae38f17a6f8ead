// The link: all of what is shown is in the address, after `#`.
//
//   #/T?at=txid:17                     a table     #/T/5?at=txid:17     a row
//   #:schema  #:log  #:storage  #:search?text=..&deleted=1  #:log?of=TABLE  #:sql?sql=SELECT ..&chart=KIND,ACROSS,UP   pages of their own
//
// Further parameters: `pin=txid:3` the moment to compare with, `order=INDEX`, `from=ID`, `filter=TEXT`, `only=changed`, `follow=1`,
// `schema=then` tables and fields as they were called then, `zone=ZONE` the one in which times are written.

const VIEWS = ['schema', 'log', 'search', 'sql', 'storage'];
const KNOWN = ['at', 'pin', 'order', 'from', 'filter', 'only', 'schema', 'text', 'deleted', 'of', 'sql', 'chart', 'follow', 'zone'];

const txidOf = (text) => (/^txid:\d+$/.test(text ?? '') ? Number(text.slice(5)) : null);

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function isZone(zone) {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: zone }));
  } catch {
    return false;
  }
}

/** Returns what nobody understands of a link, in words. */
function wrongIn(path, parameters) {
  const value = (name) => JSON.stringify(parameters.get(name));
  const must = (name, is, what) => (parameters.has(name) && !is(parameters.get(name)) ? [`${name}=${value(name)} isn't ${what}`] : []);
  const number = (it) => /^\d+$/.test(it);
  const isOf = (...all) => (it) => all.includes(it);
  const parts = path.startsWith(':') ? [] : path.split('/').slice(1);
  return [
    ...(path.startsWith(':') && !VIEWS.includes(path.slice(1)) ? [`there is no page ${JSON.stringify(path.slice(1))}`] : []),
    ...(path && !/^[:/]/.test(path) ? [`${JSON.stringify(path)} is neither a table, as /TABLE, nor a page, as :log`] : []),
    ...(parts.length > 2 || (parts.length === 2 && !number(parts[1])) ? [`${JSON.stringify(parts.slice(1).join('/'))} isn't the id of a row`] : []),
    ...must('pin', (it) => txidOf(it) != null, 'a transaction, as txid:17'),
    ...must('from', number, 'a number'),
    ...must('only', isOf('', 'changed'), 'changed'),
    ...must('schema', isOf('then'), 'then'),
    ...must('zone', isZone, 'a zone of time that this browser knows'),
    ...[...parameters.keys()].filter((name) => !KNOWN.includes(name)).map((name) => `${JSON.stringify(name)} isn't a part of links`),
  ];
}

export function readLink(hash) {
  const [path, text] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const parameters = new URLSearchParams(text ?? '');
  const link = {
    view: 'table', table: null, id: null,
    at: txidOf(parameters.get('at')),
    moment: txidOf(parameters.get('at')) == null ? parameters.get('at') : null,
    pin: txidOf(parameters.get('pin')),
    order: parameters.get('order'),
    from: Number(parameters.get('from') ?? 0) || 0,
    filter: parameters.get('filter') ?? '',
    only: parameters.get('only') === 'changed' ? 'changed' : '',
    text: parameters.get('text') ?? '',
    deleted: parameters.get('deleted') === '1',
    of: parameters.get('of') ?? '',
    sql: parameters.get('sql') ?? '',
    chart: parameters.get('chart') ?? '',
    follow: parameters.get('follow') === '1',
    then: parameters.get('schema') === 'then',
    zone: isZone(parameters.get('zone') ?? 'UTC') ? parameters.get('zone') ?? 'UTC' : 'UTC',
    wrong: wrongIn(path, parameters),
  };
  if (VIEWS.includes(path.slice(1)) && path.startsWith(':')) return { ...link, view: path.slice(1) };
  if (!path.startsWith('/')) return link;
  const [, table, id] = path.split('/').map(decoded);
  link.table = table || null;
  if (id !== undefined && /^\d+$/.test(id)) Object.assign(link, { view: 'row', id: Number(id) });
  return link;
}

export function writeLink(link) {
  const parameters = new URLSearchParams();
  if (link.at != null) parameters.set('at', `txid:${link.at}`);
  if (link.pin != null) parameters.set('pin', `txid:${link.pin}`);
  if (link.follow) parameters.set('follow', '1');
  if (link.then) parameters.set('schema', 'then');
  const isTable = link.view === 'table' || link.view === 'row';
  if (isTable && link.order) parameters.set('order', link.order);
  if (isTable && link.filter) parameters.set('filter', link.filter);
  if (isTable && link.only) parameters.set('only', link.only);
  if (link.view === 'table' && link.from) parameters.set('from', link.from);
  if (link.view === 'search' && link.text) parameters.set('text', link.text);
  if (link.view === 'search' && link.deleted) parameters.set('deleted', '1');
  if (link.view === 'log' && link.of) parameters.set('of', link.of);
  for (const key of link.view === 'sql' ? ['sql', 'chart'] : []) if (link[key]) parameters.set(key, link[key]);
  if (link.zone !== 'UTC') parameters.set('zone', link.zone);
  let path = `:${link.view}`;
  if (isTable) path = `/${encodeURIComponent(link.table ?? '')}`;
  if (link.view === 'row') path += `/${link.id}`;
  // A link is easier to read with its colons and commas.
  const text = parameters.toString().replaceAll('%3A', ':').replaceAll('%2C', ',');
  return `#${path}${text && `?${text}`}`;
}
