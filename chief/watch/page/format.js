// Numbers, times and sizes as text. Undefined is "–": not known. Null is a number that is NaN or infinite.

const kUnknown = '–';
const kNotFinite = 'NaN';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export function count(value) {
  if (value === undefined) return kUnknown;
  return value === null ? kNotFinite : whole.format(value);
}

// Four significant digits.
export function number(value) {
  if (value === undefined) return kUnknown;
  if (value === null || !Number.isFinite(value)) return kNotFinite;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2).replace('e+', 'e').replace('e-', 'e−').replace(/^-/, '−');
  if (size >= 1000) return whole.format(value);
  return String(Number(value.toPrecision(4))).replace(/^-/, '−');
}

// With as many decimals as its neighbours in a column.
export function decimals(value) {
  return value === undefined || value === null ? number(value) : value.toFixed(value < 100 ? 2 : 1);
}

// As the label of an axis: short.
export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  if (size !== 0 && size < 1e-3) return value.toExponential(0).replace('e-', 'e−');
  return trim(value);
}

const trim = (value) => String(Number(value.toPrecision(4)));

export function percent(share, digits = 0) {
  if (share === undefined || share === null || !Number.isFinite(share)) return kUnknown;
  return `${(100 * share).toFixed(digits)} %`;
}

export function duration(seconds) {
  if (seconds === undefined || seconds === null || !Number.isFinite(seconds)) return kUnknown;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const s = Math.round(seconds);
  const pad = (value) => String(value).padStart(2, '0');
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${pad(s % 60)} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${pad(hours % 24)} h`;
}

export function bytes(value) {
  if (value === undefined || value === null) return kUnknown;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

const two = (value) => String(value).padStart(2, '0');

// 14:03:07, with the day before it when that is another than `now`'s.
export function clock(ms, now = Date.now()) {
  if (ms === undefined || ms === null) return kUnknown;
  const at = new Date(ms);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return at.toDateString() === new Date(now).toDateString() ? time : `${day(at)} ${time}`;
}

const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;

export function ago(ms, now) {
  const seconds = Math.max(0, (now - ms) / 1000);
  return seconds < 1 ? 'now' : `${duration(seconds < 10 ? Math.floor(seconds) : seconds)} ago`;
}

// The series' name of a worker: a chief writes `/` as `_`.
export const stepTimeSeries = (worker) => `worker/${worker.replaceAll('/', '_')}/step_ms`;

// worker-2 before worker-10.
const collator = new Intl.Collator('en', { numeric: true });
export const byName = (a, b) => collator.compare(a, b);
