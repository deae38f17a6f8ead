// What is shown, and how it becomes something else. The link says what is wanted; this fetches what is missing.

import { Refused, asked, follow, get, lines } from './net.js';
import { begin, end } from './ready.js';
import { Rows, added, changedRows, touched, transaction } from './rows.js';
import { readLink, writeLink } from './state.js';

/** Of so many tables the numbers of rows are asked for at each jump; of more only that of the table that is shown. */
export const MOST_TABLES = 200;
/** So many rows that differ from the pinned moment are coloured. */
const MOST_DIFFERENT = 5000;
/** The address may be written so often at once, and then again after so many milliseconds. Browsers ignore what is written
 *  more often (Safari allows 100 in half a minute, others 200 in ten seconds), and then also the links that are followed. */
const [WRITES, CALM] = [10, 350];

export class Model {
  constructor() {
    this.link = readLink(location.hash);
    this.listeners = new Set();
    this.catalog = null;
    this.activity = null;
    this.rows = null;
    /** The transaction at whose end everything is shown, with its changes. */
    this.found = null;
    this.txid = null;
    this.pinned = null;
    /** The table and the row that were shown last. */
    this.lastTable = null;
    this.lastRow = null;
    this.counts = new Map();
    this.error = null;
    /** True if what the link asks for couldn't be read: then nothing is shown. */
    this.isLost = false;
    /** The schema of the moment, if that is wanted. */
    this.past = null;
    this.turn = 0;
    /** What the address says, as it was followed or written. */
    this.address = location.hash;
    /** How often it may be written, and since when that is so. */
    this.writes = { free: WRITES, since: 0, timer: null };
    this.news = 0;
    addEventListener('hashchange', () => {
      this.dropWrite();
      this.address = location.hash;
      this.go(readLink(location.hash));
    });
    // Back from a link leads to what was shown.
    addEventListener('click', () => this.writes.timer && this.write(), true);
  }

  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell() {
    for (const listener of this.listeners) listener();
  }

  get last() {
    return Math.max(this.activity?.last ?? 0, this.catalog?.last ?? 0, this.news);
  }

  get first() {
    return Math.max(1, this.activity?.first ?? 1);
  }

  /** The tables that are shown: those of now, or of the moment. */
  get shown() {
    return (this.isThen && this.past) || this.catalog;
  }

  /** True if the schema of a moment in the past is wanted. */
  get isThen() {
    return this.link.then && this.link.at != null && this.link.at < this.last;
  }

  table(name = this.link.table) {
    return this.shown?.byName.get(name);
  }

  /** The name of the table that is shown, was shown last, or is the first one. */
  get tableOrLast() {
    const tables = this.shown?.tables ?? [];
    return this.link.table ?? this.lastTable ?? (tables.find((it) => it.rows > 0) ?? tables[0])?.name ?? null;
  }

  async start() {
    try {
      await Promise.all([this.loadCatalog(), this.loadActivity()]);
      await this.go(this.link);
    } catch (error) {
      this.fail(error);
    }
  }

  async loadCatalog() {
    const catalog = known(await get('/schema'));
    catalog.last = catalog.txid;
    this.catalog = catalog;
    this.setCounts(catalog);
  }

  /** Has the schema of the moment, if it is wanted. */
  async loadPast(signal) {
    const { at } = this.link;
    if (!this.isThen && this.past) Object.assign(this, { past: null, countsOf: null });
    if (!this.isThen || this.past?.txid === at) return;
    this.past = { ...known(await get('/schema', { at: `txid:${at}`, as_it_was: true }, signal)), txid: at };
    this.setCounts(this.past);
  }

  /** Looks what was committed, and whether it changed the schema. */
  async loadNews() {
    await this.loadActivity().catch(() => {});
    const changed = this.activity.marks.findLast((mark) => mark.kind === 'schema')?.txid ?? 0;
    if (changed <= this.catalog.last) return;
    await this.loadCatalog().catch(() => {});
    this.tell();
  }

  setCounts(catalog) {
    this.counts = new Map(catalog.tables.map((table) => [table.name, table.rows]));
    this.countsOf = catalog.txid;
  }

  async loadActivity() {
    this.activity = await get('/activity', { buckets: 600 });
    this.tell();
    // The journal is being read: the plot is filled meanwhile.
    if (this.activity.known < this.activity.last && !this.activity.failure) {
      setTimeout(() => this.loadActivity().catch(() => {}), 250);
    }
  }

  /** Wants something else; changes of the moment alone don't fill the browser's history. */
  want(change, isMinor = false) {
    const link = { ...this.link, ...change };
    if (isMinor) {
      this.link = link;
      this.writeSoon();
      return this.go(link);
    }
    if (this.writes.timer) this.write();
    const address = writeLink(link);
    if (address !== location.hash) history.pushState(null, '', address);
    this.address = location.hash;
    return this.go(link);
  }

  /** Writes the link into the address in place of the one that is there: at once, or soon if that was done often just now. */
  writeSoon() {
    const { writes } = this;
    if (writes.timer) return;
    const now = performance.now();
    writes.free = Math.min(WRITES, writes.free + (now - writes.since) / CALM);
    writes.since = now;
    if (writes.free >= 1) this.write();
    else writes.timer = setTimeout(() => this.write(), (1 - writes.free) * CALM);
  }

  dropWrite() {
    clearTimeout(this.writes.timer);
    this.writes.timer = null;
  }

  write() {
    this.dropWrite();
    const address = writeLink(this.link);
    // A link that was just followed isn't replaced: its event comes.
    if (location.hash !== this.address || address === this.address) return;
    this.writes.free -= 1;
    history.replaceState(null, '', address);
    this.address = location.hash;
  }

  wantTxid(txid) {
    const at = Math.min(Math.max(txid, this.first), this.last);
    return this.want({ at: at === this.last ? null : at, moment: null, follow: false }, true);
  }

  /** Shows what a link says; the newest link wins. */
  async go(link) {
    const turn = ++this.turn;
    this.link = link;
    this.wait?.abort();
    this.wait = new AbortController();
    begin('model');
    this.tell();
    try {
      await this.resolve(this.wait.signal);
      if (turn !== this.turn) return;
      await this.fetch(turn, this.wait.signal);
      if (turn !== this.turn) return;
      this.error = null;
      this.isLost = false;
      this.keepFollowing();
      this.tell();
      mark(this);
      this.compareOn(this.wait.signal);
    } catch (error) {
      if (turn === this.turn && error.name !== 'AbortError') this.lose(error);
    }
  }

  /** Says that what the link asks for can't be shown. Nothing that was read before stays under the new moment. */
  lose(error) {
    Object.assign(this, { isLost: true, rows: null, found: null, txid: null, pinned: null });
    this.fail(error);
  }

  fail(error) {
    this.error = error instanceof Refused ? error.message : `${error}`;
    if (!(error instanceof Refused)) console.warn(error);
    this.tell();
    mark(this);
  }

  /** Finds the table and the moment that the link means. */
  async resolve(signal) {
    const { link } = this;
    if (link.moment) {
      const { txid } = await get('/at', { moment: link.moment }, signal);
      this.link = { ...link, at: txid === this.last ? null : txid, moment: null };
      this.writeSoon();
    }
    if (Math.max(link.at, link.pin) > this.last) await this.loadActivity();
    for (const txid of [link.at, link.pin]) {
      if (txid > this.last) throw new Refused(404, 'not_found', `the link asks for transaction ${txid}: the last one is ${this.last}`);
    }
    await this.loadPast(signal);
    if (this.link.view === 'table' && this.link.table == null) this.link = { ...this.link, table: this.tableOrLast };
    if (this.table()) this.lastTable = this.link.table;
    if (link.view === 'row') this.lastRow = link.id;
    if ((link.view === 'table' || link.view === 'row') && this.link.table != null && !this.table()) {
      const then = this.isThen ? ' at this moment' : '';
      throw new Refused(404, 'not_found', `there is no table ${JSON.stringify(this.link.table)}${then}`);
    }
    const { order } = this.link;
    if (link.view === 'table' && order && !this.table()?.indexes.some((it) => it.name === order)) {
      throw new Refused(404, 'not_found', `table ${JSON.stringify(this.link.table)} has no index ${JSON.stringify(order)}`);
    }
  }

  async fetch(turn, signal) {
    const { link, last } = this;
    const txid = Math.max(0, Math.min(link.at ?? last, last));
    const before = this.found;
    if (!this.rows || this.rows.table !== link.table) this.rows = link.table && new Rows(link.table);
    const isTable = link.view === 'table' && this.rows;
    // A far jump asks for the rows and for the transaction at once.
    const asked = isTable && !link.filter && this.isFar(txid) ? this.askRows(txid, signal) : null;
    asked?.catch(() => {});
    let found = before;
    // A list of changed rows needs all of their fields; a step needs what differs.
    const isWhole = link.only === 'changed' && link.pin == null;
    if (found?.txid !== txid || (isWhole && !found.isWhole)) {
      found = await transaction(txid, isWhole, signal).catch((error) => {
        // The present state is there also without the transaction that led to it.
        if (error.status !== 410 || txid !== last) throw error;
        return null;
      });
    }
    if (asked) this.rows.take(await asked);
    else if (isTable && !link.filter) await this.showRows({ txid, found, before }, signal);
    this.count({ txid, found, before });
    const { pinned } = this;
    if (link.pin !== (pinned?.from ?? null) || (pinned && (pinned.to !== txid || pinned.table !== link.table))) {
      this.pinned = link.pin == null ? null : await this.compare(link.pin, txid, signal);
    }
    if (turn !== this.turn) return;
    Object.assign(this, { found, txid });
    this.refreshCounts(turn);
  }

  /** The place in the table that is shown. */
  get place() {
    return { order: this.link.order, from: this.link.from, count: 60, then: this.isThen };
  }

  /** True if no step leads to the rows of a moment: then as many are asked for as there are here, whatever lies between. */
  isFar(txid) {
    const { rows } = this;
    return !rows.has(this.place) || Math.abs(txid - rows.txid) > 1 || (this.isThen && txid !== rows.txid);
  }

  askRows(txid, signal) {
    const { link, last } = this;
    return this.rows.ask({ txid, last, order: link.order, from: Math.max(0, link.from - 40), then: this.isThen }, signal);
  }

  /** Brings the rows to a moment: by a transaction's changes, or by loading them. */
  async showRows({ txid, found, before }, signal) {
    const { rows } = this;
    if (!this.isFar(txid)) {
      const distance = txid - rows.txid;
      if (distance === 0) return;
      if (distance === 1 && found && rows.step(found, true)) return;
      if (distance === -1 && before?.txid === txid + 1 && rows.step(before, false)) return;
    }
    rows.take(await this.askRows(txid, signal));
  }

  count({ txid, found, before }) {
    const { counts } = this;
    const change = (of, sign) => {
      for (const [table, number] of added(of)) if (counts.has(table)) counts.set(table, counts.get(table) + sign * number);
      this.countsOf = txid;
    };
    if (this.countsOf === txid - 1 && found && !found.left_out) change(found, 1);
    else if (this.countsOf === txid + 1 && before?.txid === txid + 1 && !before.left_out) change(before, -1);
  }

  /** After a jump the numbers of rows are asked for, when nothing else is wanted for a moment. */
  refreshCounts(turn) {
    if (this.countsOf === this.txid || this.isThen) return;
    setTimeout(async () => {
      if (turn !== this.turn) return;
      const at = this.txid === this.last ? null : `txid:${this.txid}`;
      const table = this.catalog.tables.length > MOST_TABLES ? this.link.table ?? this.catalog.tables[0].name : null;
      const catalog = await get('/schema', { at, table }).catch(() => null);
      if (turn !== this.turn || !catalog) return;
      this.setCounts({ ...catalog, txid: this.txid });
      this.tell();
    }, 150);
  }

  /** Says what differs from a pinned moment: how many rows of each table, and which ones of the table that is shown. */
  async compare(pin, txid, signal) {
    // A table that was dropped since has no values through the schema of now.
    const table = this.catalog.byName.has(this.link.table) ? this.link.table : null;
    const asked = { from: `txid:${pin}`, to: `txid:${txid}`, table, limit: MOST_DIFFERENT };
    const [time, { tables, rows, next }] = await Promise.all([this.timeOf(pin, signal), get('/compare', asked, signal)]);
    return { from: pin, to: txid, table: this.link.table, time, tables: new Map(Object.entries(tables)), changes: rows, next, asked };
  }

  /** Asks for the rest of a comparison, answer after answer. */
  async compareOn(signal) {
    const { pinned } = this;
    try {
      while (pinned?.next != null && pinned === this.pinned && !signal.aborted) {
        const limit = MOST_DIFFERENT - pinned.changes.length;
        const { tables, rows, next } = await get('/compare', { ...pinned.asked, limit, start: pinned.next }, signal);
        for (const [table, count] of Object.entries(tables)) pinned.tables.set(table, (pinned.tables.get(table) ?? 0) + count);
        Object.assign(pinned, { changes: [...pinned.changes, ...rows], next });
        this.tell();
      }
    } catch (error) {
      if (error.name !== 'AbortError') this.lose(error);
    }
  }

  /** Returns when a transaction was committed; null if that isn't kept. */
  async timeOf(txid, signal) {
    const known = [this.found, this.pinned && { ...this.pinned, txid: this.pinned.from }].find((it) => it?.txid === txid);
    if (known) return known.time;
    const [found] = await lines('/log', { after: txid - 1, limit: 1, rows: 0, fields: 'changed' }, signal);
    return found?.time ?? null;
  }

  /** What the transaction changed; with a pinned moment what differs from it. */
  get changes() {
    return this.pinned ? this.pinned.changes : this.found?.changes;
  }

  /** Returns the cells of the shown table to be coloured. */
  touched() {
    return touched(this.changes, this.link.table);
  }

  /** Returns its rows that have such cells, and those that were deleted. */
  changedRows() {
    return changedRows(this.changes, this.link.table);
  }

  /** Prints all rows that are here, not only those that are seen. */
  print() {
    this.isPrinting = true;
    this.tell();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      print();
      this.isPrinting = false;
      this.tell();
    }));
  }

  keepFollowing() {
    const wants = this.link.follow;
    if (wants && !this.stopFollowing) {
      // What is shown counts: another answer may have said that there is more.
      let told = this.link.at == null ? this.txid : this.last;
      this.stopFollowing = follow((txid) => {
        if (txid <= told) return;
        told = txid;
        this.news = Math.max(this.news, txid);
        this.loadNews();
        if (this.link.follow) this.go({ ...this.link, at: null });
      });
    } else if (!wants && this.stopFollowing) {
      this.stopFollowing();
      this.stopFollowing = null;
    }
  }

  /** Moves to the next mark in a direction: a comment, a change of the schema, an erasure, or a mark of valid data. */
  stepMark(direction) {
    const at = this.link.at ?? this.last;
    const marks = (this.activity?.marks ?? []).map((mark) => mark.txid).filter((txid) => (txid - at) * direction > 0);
    if (!marks.length) return undefined;
    return this.wantTxid(direction > 0 ? Math.min(...marks) : Math.max(...marks));
  }

  /** Returns the last transaction up to a time; the first one, if all are later. */
  async atTime(time) {
    try {
      return (await get('/at', { moment: `time:${time}` })).txid;
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 0) throw error;
      return this.first;
    }
  }

  async wantTime(time) {
    try {
      await this.wantTxid(await this.atTime(time));
    } catch (error) {
      this.fail(error);
    }
  }

  /** Moves by a day. */
  async stepDay(direction) {
    const at = this.link.at ?? this.last;
    const time = this.found && new Date(this.found.time).getTime();
    if (!time) return this.wantTxid(at + direction);
    const there = await this.atTime(new Date(time + direction * 86_400_000).toISOString());
    return this.wantTxid(direction > 0 ? Math.max(there, at + 1) : Math.min(there, at - 1));
  }
}

/** Adds to a list of tables where each is in it, and by which name. */
function known(catalog) {
  catalog.tables.forEach((table, place) => { table.place = place; });
  return { ...catalog, byName: new Map(catalog.tables.map((table) => [table.name, table])) };
}

/** Says on the body what is shown. */
function mark(model) {
  const { dataset } = document.body;
  dataset.txid = model.txid ?? '';
  dataset.table = model.link.table ?? '';
  dataset.requests = asked.count;
  end('model');
}
