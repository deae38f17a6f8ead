// Rows as texts for elsewhere.

import { textOf } from './cells.js';
import { address, tablePath } from './net.js';

// As the server writes it: null is empty, an empty text has quotes.
const csvCell = (text) => (text == null ? '' : text === '' || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const markdownCell = (text) => (text ?? '').replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll(/\r?\n/g, ' ');

/** Each makes a text of rows, which are objects, and of the fields of a table or an answer. `isErased` says of a field of a row
 *  whether null is an erased value: only a text for people says so. */
export const formats = {
  CSV(fields, rows) {
    const line = (cells) => cells.map(csvCell).join(',');
    return `${[line(fields.map((it) => it.key)), ...cellsOf(fields, rows).map(line)].join('\n')}\n`;
  },
  JSON(fields, rows) {
    return `${JSON.stringify(rows, null, 1)}\n`;
  },
  Markdown(fields, rows, isErased) {
    const line = (cells) => `| ${cells.map(markdownCell).join(' | ')} |`;
    return `${[line(fields.map((it) => it.key)), line(fields.map(() => '---')), ...cellsOf(fields, rows, isErased).map(line)].join('\n')}\n`;
  },
};

function cellsOf(fields, rows, isErased) {
  const text = (row, field) => (row[field.key] != null ? textOf(field, row[field.key]) : isErased?.(row, field) ? '*erased*' : null);
  return rows.map((row) => fields.map((field) => text(row, field)));
}

export const fieldsOf = (table) => [{ key: 'id', type: 'id' }, ...table.fields];

export async function copy(format, fields, rows, isErased) {
  await navigator.clipboard.writeText(formats[format](fields, rows, isErased));
}

/** The addresses of all rows of a table as a file, which the server sends as it makes it. */
export function files(model, table) {
  const { order, at } = model.link;
  const asked = { at: at == null ? null : `txid:${at}`, as_it_was: model.isThen || null, index: order };
  return [['CSV', 'csv'], ['JSON, a row a line', 'ndjson']].map(([name, file]) => [name, address(tablePath(table), { ...asked, file })]);
}

const endings = { CSV: 'csv', JSON: 'json', Markdown: 'md' };

/** Saves rows as a file. */
export function save(format, name, fields, rows) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([formats[format](fields, rows)], { type: 'text/plain' }));
  link.download = `${name}.${endings[format]}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
