// Times as people read them, in the zone that was chosen.

const known = ['UTC', Intl.DateTimeFormat().resolvedOptions().timeZone, ...(Intl.supportedValuesOf?.('timeZone') ?? [])];

/** Returns the names of all time zones: UTC, that of this machine, the others; and one that a link names. */
export const zones = (chosen) => [...new Set([...known, chosen].filter(Boolean))];

const formats = new Map();

function formatOf(zone) {
  if (!formats.has(zone)) {
    const options = {
      timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit',
      hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
    };
    formats.set(zone, new Intl.DateTimeFormat('en-CA', options));
  }
  return formats.get(zone);
}

function parts(text, zone) {
  const date = new Date(text);
  // Years before 1000 and after 9999 are written by browsers in other ways.
  if (Number.isNaN(date.getTime()) || !/^[1-9]\d{3}-/.test(text)) return null;
  return Object.fromEntries(formatOf(zone).formatToParts(date).map((it) => [it.type, it.value]));
}

/** Returns a time of the server as `2024-02-29 12:00:00`; as it is, if the browser doesn't know such a time. Parts of a second
 *  are left out, unless it shall be exact. */
export function showTime(text, zone, isExact) {
  const it = text && parts(text, zone);
  const fraction = (isExact && text?.match(/\.\d+/)?.[0]) || '';
  return it ? `${it.year}-${it.month}-${it.day} ${it.hour}:${it.minute}:${it.second}${fraction}` : text ?? '';
}

/** Returns the last moment of a day, `2024-02-29`, in a zone. */
export function endOfDay(day, zone) {
  const end = Date.parse(`${day}T23:59:59.999Z`);
  const there = Date.parse(`${showTime(new Date(end).toISOString(), zone).replace(' ', 'T')}.999Z`);
  return new Date(end - (there - end)).toISOString();
}

export const number = (value) => Number(value).toLocaleString('en-US');

/** A number of things, as `1 change` and `2 changes`. */
export const plural = (count, what) => `${number(count)} ${what}${count === 1 ? '' : 's'}`;

export function bytes(count) {
  if (count == null) return 'not known';
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = count;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return unit ? `${value.toFixed(1)} ${units[unit]}` : `${number(count)} bytes`;
}
