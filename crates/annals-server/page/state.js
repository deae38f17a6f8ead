// The link: all of what is shown is in the address, after `#`.
//
//   #/T?at=txid:17                     a table     #/T/5?at=txid:17     a row
//   #:schema  #:log  #:storage  #:search?text=..&deleted=1  #:log?of=TABLE  #:sql?sql=SELECT ..&chart=KIND,ACROSS,UP   pages of their own
//
// Further parameters: `pin=txid:3` the moment to compare with, `order=INDEX`, `from=ID`, `filter=TEXT`, `only=changed`, `follow=1`,
// `zone=ZONE` the one in which times are written.

const txidOf = (text) => (/^txid:\d+$/.test(text ?? '') ? Number(text.slice(5)) : null);

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
    zone: parameters.get('zone') ?? 'UTC',
  };
  if (path.startsWith(':')) return { ...link, view: path.slice(1) };
  const [, table, id] = path.split('/').map(decodeURIComponent);
  link.table = table || null;
  if (id !== undefined && /^\d+$/.test(id)) Object.assign(link, { view: 'row', id: Number(id) });
  return link;
}

export function writeLink(link) {
  const parameters = new URLSearchParams();
  if (link.at != null) parameters.set('at', `txid:${link.at}`);
  if (link.pin != null) parameters.set('pin', `txid:${link.pin}`);
  if (link.follow) parameters.set('follow', '1');
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
