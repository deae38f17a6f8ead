// Times as people read them, in the zone that was chosen.

const zones = ['UTC', Intl.DateTimeFormat().resolvedOptions().timeZone].filter(Boolean);
export const allZones = [...new Set(zones)];

function parts(text, zone) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return null;
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit',
    hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
  });
  return Object.fromEntries(format.formatToParts(date).map((it) => [it.type, it.value]));
}

/** Returns a time of the server as `2024-02-29 12:00:00`; as it is, if the browser doesn't know such a time. */
export function showTime(text, zone) {
  const it = text && parts(text, zone);
  return it ? `${it.year}-${it.month}-${it.day} ${it.hour}:${it.minute}:${it.second}` : text ?? '';
}

export const number = (value) => Number(value).toLocaleString('en-US');

export function bytes(count) {
  if (count == null) return 'not known';
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = count;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return unit ? `${value.toFixed(1)} ${units[unit]}` : `${number(count)} bytes`;
}
