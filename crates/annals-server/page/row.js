// A row: its fields, all of its versions, since when each value is there, and who refers to it.

import { html, useEffect, useLayoutEffect, useState } from './vendor/preact.js';
import { get, post, tablePath } from './net.js';
import { asking } from './ready.js';
import { Value, WAS, cut, isNumeric, wasText } from './cells.js';
import { erasures } from './erased.js';
import { number, showTime } from './moment.js';
import { writeLink } from './state.js';

const MOST = 500;
const KINDS = { insert: 'inserted', update: 'changed', delete: 'deleted', state: 'state at the beginning of the kept history' };

/** Returns for each field the last version up to a transaction that changed it. */
export function blame(versions, txid) {
  const since = new Map();
  for (const version of versions) {
    if (version.txid > txid) break;
    for (const field of Object.keys(version.new ?? {})) since.set(field, version);
  }
  return since;
}

/** True if the table was listed in another order than that of ids, or only some rows of it. */
const isInPart = (link) => Boolean(link.filter || link.only || link.order);

/** Returns the versions whose comment is said beside a field: each once, beside the first one that has it. */
function commented(table, since) {
  const [said, firsts] = [new Set(), new Map()];
  for (const { key } of table.fields) {
    const version = since.get(key);
    if (!version?.comment || said.has(version.comment)) continue;
    said.add(version.comment);
    firsts.set(key, version.comment);
  }
  return firsts;
}

/** Returns the values of a row after a transaction, as far as its versions say them; null if there was no row. */
export function valuesAt(versions, txid) {
  let values = null;
  for (const version of versions) {
    if (version.txid > txid) break;
    values = version.new && { ...(version.old ? values : null), ...version.new };
  }
  return values;
}

/** Returns the value that a field had at the pinned moment, or before the transaction; undefined if it is the same. */
function valueBefore(field, { row, pinned, version, txid }) {
  const was = pinned ? pinned[field.key] : version?.txid === txid ? version.old?.[field.key] : undefined;
  return JSON.stringify(was) === JSON.stringify(row[field.key]) ? undefined : was;
}

export function RowView({ model, table, zone }) {
  const { id } = model.link;
  const path = `${tablePath(table.name)}/${id}`;
  const [row, setRow] = useState(null);
  const [versions, setVersions] = useState([]);
  const { txid, last } = model;
  const then = model.isThen || null;
  // The history is that of the table that there is now.
  const now = model.catalog.tables.find((it) => it.number === table.number);
  useLayoutEffect(() => {
    if (txid == null) return undefined;
    const at = txid === last ? null : `txid:${txid}`;
    const or = (missing) => (error) => {
      if (error.status !== 404) throw error;
      return missing;
    };
    return asking('row', async (signal) => {
      const ofRow = get(path, { at, as_it_was: then }, signal).catch(or(null));
      const ofHistory = now ? get(`${tablePath(now.name)}/${id}/history`, { limit: MOST }, signal).catch(or([])) : [];
      const [values, history] = await Promise.all([ofRow, ofHistory]);
      setRow(values);
      setVersions(history);
    }, (error) => model.lose(error));
  }, [path, txid, last, then]);
  const since = blame(versions, txid);
  const comments = commented(table, since);
  const shown = versions.findLast((it) => it.txid <= txid);
  const pinned = model.link.pin == null ? null : valuesAt(versions, model.link.pin) ?? {};
  const [erasure, erasureBefore] = [txid, model.link.pin ?? txid - 1].map((it) => erasures(model, table, id, it));
  const ofCell = (field) => {
    const version = since.get(field.key);
    const was = valueBefore(field, { row, pinned, version, txid });
    const isChanged = was !== undefined || (!pinned && version?.txid === txid);
    return { 'data-field': field.key, class: `${isNumeric(field) ? 'number' : ''}${isChanged ? ' changed' : ''}`, 'data-was': was === undefined ? null : cut(wasText(field, was, zone, erasureBefore(field)), WAS) };
  };
  return html`
    <article class="of-row" data-row=${id}>
      <h2><a href=${writeLink({ ...model.link, view: 'table', from: isInPart(model.link) ? 0 : id })}>${table.name}</a> ${id}</h2>
      ${!row && html`<p class="none">There is no such row at this moment${versions.length ? ': see its versions' : ', and was none in the kept history'}.</p>`}
      <div>${row && html`<h3>${txid < last ? 'As it was' : 'As it is'}</h3>
        <table class="fields"><thead><tr><th>field</th><th>value</th><th>this value is there since</th></tr></thead><tbody>
        ${table.fields.map((field) => html`<tr key=${field.key}>
          <th scope="row" title=${field.type}>${field.key}</th>
          <td ...${ofCell(field)}>
            <${Value} field=${field} value=${row[field.key]} link=${model.link} zone=${zone} origin=${{ table: table.name, id, txid }} erasure=${erasure(field)} /></td>
          <td class="since"><${Since} model=${model} version=${since.get(field.key)} comment=${comments.get(field.key)} zone=${zone} /></td>
        </tr>`)}
      </tbody></table>`}
      <${Referrers} model=${model} path=${path} table=${table} /></div>
      <section aria-label="versions"><h3>Versions: ${number(versions.length)}</h3>
      ${versions.length >= MOST && html`<p>The newest ${MOST}; there are older ones.</p>`}
      <ol class="versions">${versions.toReversed().map((version) => html`
        <${Version} key=${version.txid} model=${model} table=${now} path=${path} version=${version} shown=${shown} zone=${zone} />`)}</ol></section>
    </article>`;
}

/** Since when a value is there. */
function Since({ model, version, comment, zone }) {
  if (!version) return null;
  const to = writeLink({ ...model.link, at: version.txid });
  return html`${showTime(version.time, zone)} <a href=${to} title=${`transaction ${number(version.txid)}`}>${number(version.txid)}</a>
    ${comment && html` <q title=${comment}>${comment}</q>`}`;
}

function Version({ model, table, path, version, shown: atMoment, zone }) {
  const fields = Object.keys(version.new ?? version.old ?? {});
  const ofKey = (key) => table.fields.find((field) => field.key === key) ?? { key, type: 'string' };
  const shown = (side, key) => {
    if (version[side] == null) return null;
    const origin = { table: table.name, id: model.link.id, txid: side === 'old' ? version.txid - 1 : version.txid };
    return html`<${Value} field=${ofKey(key)} value=${version[side][key]} link=${model.link} zone=${zone} origin=${origin}
      erasure=${erasures(model, table, origin.id, origin.txid)(ofKey(key))} />`;
  };
  const restore = async () => {
    const comment = prompt(`Restore row ${model.link.id} of ${table.name} as it was after transaction ${version.txid}?\n\n`
      + 'It becomes a new transaction. Its comment:', `restore ${table.name} ${model.link.id}`);
    if (comment == null) return;
    try {
      const { txid } = await post(`${path}/restore`, { moment: `txid:${version.txid}`, comment });
      model.news = Math.max(model.news, txid);
      await model.loadActivity();
      await model.want({ at: null });
    } catch (error) {
      model.fail(error);
    }
  };
  const isShown = version === atMoment;
  const isLater = version.txid > model.txid;
  return html`<li class=${`version ${version.kind}${isShown ? ' shown' : ''}${isLater ? ' later' : ''}`} data-version=${version.txid}>
    <p><strong>${showTime(version.time, zone)}</strong> <span class=${`kind ${version.kind}`}>${KINDS[version.kind] ?? version.kind}</span>${' '}
      <a href=${writeLink({ ...model.link, at: version.txid })}>transaction ${number(version.txid)}</a>${isShown && html` · <strong>shown</strong>`}${isLater && html` · <strong>later than the moment shown</strong>`}${version.comment && html` · <q>${version.comment}</q>`}
      ${model.catalog.can_write && html` <button data-do="restore" onClick=${restore}>restore</button>`}</p>
    <table><tbody>${fields.map((key) => html`<tr key=${key}><th scope="row">${key}</th>
      <td class="old">${shown('old', key)}</td><td class="new">${shown('new', key)}</td></tr>`)}</tbody></table>
  </li>`;
}

function Referrers({ model, path, table }) {
  const [found, setFound] = useState(null);
  useEffect(() => setFound(null), [path, model.txid]);
  const at = model.txid === model.last ? null : `txid:${model.txid}`;
  const ask = () => get(`${path}/referrers`, { at }).then(setFound).catch((error) => model.fail(error));
  const canRefer = model.catalog.tables.some((it) => it.fields.some((field) => field.references === table.name));
  if (!canRefer) return null;
  if (!found) return html`<p><button data-do="referrers" onClick=${ask}>which rows refer to it?</button></p>`;
  const some = found.filter((it) => it.ids.length);
  if (!some.length) return html`<p>No row refers to it${found.some((it) => it.has_more) ? ' among the first 200,000 of each table' : ''}.</p>`;
  return html`<ul class="referrers">${some.map((it) => html`<li>${it.table}.${it.field}: ${it.ids.map((id) => html`
    <a href=${writeLink({ ...model.link, view: 'row', table: it.table, id })}>${id}</a> `)}${it.has_more && '…'}</li>`)}</ul>`;
}
