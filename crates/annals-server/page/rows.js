// The rows of a table that are shown, at a moment.
//
// A step from one transaction to the next asks for that transaction's changes only, and applies them to the rows that
// are here: forward the values after, backward the values before. Only a jump asks for the rows as they were.

import { get, lines, tablePath } from './net.js';

/** So many rows are kept around those that are seen. */
export const WINDOW = 200;
/** So many changes of a transaction are fetched. */
const MOST = 2000;

/** Returns a transaction with its changes, of which those over 2,000 are only counted: of updated rows the fields that differ,
 *  or all of them. */
export async function transaction(txid, isWhole, signal) {
  if (txid < 1) return null;
  const asked = { after: txid - 1, limit: 1, rows: MOST, fields: isWhole ? null : 'changed' };
  const [found] = await lines('/log', asked, signal);
  return found?.txid === txid ? { ...found, isWhole } : null;
}

const rowOf = (change, values) => values && { id: change.id, ...rename(change, values) };

// In rows a field named `id` has its full name, in changes it hasn't.
function rename(change, values) {
  if (!('id' in values)) return values;
  const { id, ...rest } = values;
  return { ...rest, [`${change.table}.id`]: id };
}

/** Returns the rows after one of their table was changed. `isIn` says which ids are in the window. */
export function apply(rows, change, values, isIn) {
  const place = rows.findIndex((row) => row.id >= change.id);
  const index = place < 0 ? rows.length : place;
  const isThere = rows[index]?.id === change.id;
  const row = rowOf(change, values);
  if (!row) return isThere ? rows.toSpliced(index, 1) : rows;
  // Of an updated row only some fields may be known.
  if (isThere) return rows.with(index, { ...rows[index], ...row });
  return isIn(change.id) && !(change.before && change.after) ? rows.toSpliced(index, 0, row) : rows;
}

/** A window over a table. */
export class Rows {
  constructor(table) {
    this.table = table;
    this.reset();
  }

  reset() {
    Object.assign(this, { rows: [], txid: null, order: null, from: 0, then: false, isEnd: false });
  }

  /** Asks for the rows from an id on, or from a rank in the order of an index; returns what they are when they are taken. */
  async ask({ txid, last, order, from, then }, signal) {
    const place = order ? { index: order, rank: from } : { from };
    const at = txid === last ? null : `txid:${txid}`;
    const asked = { ...place, at, as_it_was: then || null, limit: WINDOW };
    const { rows, next } = await get(tablePath(this.table), asked, signal);
    return { rows, txid, order, from, then, isEnd: next == null };
  }

  take(asked) {
    Object.assign(this, asked);
  }

  has({ order, from, count, then }) {
    if (this.txid == null || this.order !== order || this.then !== then || from < this.from) return false;
    if (this.isEnd) return true;
    if (order) return from + count <= this.from + this.rows.length;
    return this.rows.filter((row) => row.id >= from).length >= count;
  }

  /** Takes a transaction's changes; returns false if the rows must be loaded again. */
  step(found, isForward) {
    const changes = found.changes.filter((change) => change.table === this.table);
    if (found.left_out || (this.order && changes.length)) return false;
    const end = this.isEnd ? Infinity : this.rows.at(-1)?.id ?? this.from;
    const isIn = (id) => id >= this.from && id <= end;
    for (const change of changes) {
      this.rows = apply(this.rows, change, isForward ? change.after : change.before, isIn);
    }
    this.txid = isForward ? found.txid : found.txid - 1;
    return true;
  }
}

/** Returns how many rows a transaction added to each table. */
export function added(found) {
  const count = new Map();
  for (const { table, before, after } of found?.changes ?? []) {
    count.set(table, (count.get(table) ?? 0) + (after ? 1 : 0) - (before ? 1 : 0));
  }
  return count;
}

/** Returns the rows of a table that changes touched, as they are after them; deleted ones as they were. */
export function changedRows(changes, table) {
  const rows = (changes ?? []).filter((change) => change.table === table).map((change) => rowOf(change, change.after ?? change.before));
  return rows.sort((one, other) => one.id - other.id);
}

/** Returns the cells of a table that changes touched: a map from row to the set of its fields, and to its values before. */
export function touched(changes, table) {
  const rows = new Map();
  for (const change of changes ?? []) {
    if (change.table !== table) continue;
    const [before, after] = [change.before, change.after].map((it) => it && rename(change, it));
    const fields = Object.keys(after ?? before ?? {}).filter((field) =>
      !before || !after || JSON.stringify(before[field]) !== JSON.stringify(after[field]));
    rows.set(change.id, { kind: before ? (after ? 'update' : 'delete') : 'insert', fields: new Set(fields), before });
  }
  return rows;
}
