// The rows that are shown, as texts for elsewhere.

import { textOf } from './cells.js';

const keysOf = (table) => [{ key: 'id', type: 'id' }, ...table.fields];

const csvCell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const markdownCell = (text) => text.replaceAll('|', '\\|').replaceAll(/\r?\n/g, ' ');

export const formats = {
  CSV(table, rows) {
    const fields = keysOf(table);
    const line = (cells) => cells.map(csvCell).join(',');
    return [line(fields.map((it) => it.key)), ...rows.map((row) => line(fields.map((it) => textOf(it, row[it.key], 'UTC'))))].join('\n');
  },
  JSON(table, rows) {
    return JSON.stringify(rows, null, 1);
  },
  Markdown(table, rows) {
    const fields = keysOf(table);
    const line = (cells) => `| ${cells.map(markdownCell).join(' | ')} |`;
    return [
      line(fields.map((it) => it.key)), line(fields.map(() => '---')),
      ...rows.map((row) => line(fields.map((it) => textOf(it, row[it.key], 'UTC')))),
    ].join('\n');
  },
};

export async function copy(format, table, rows) {
  await navigator.clipboard.writeText(formats[format](table, rows));
}
