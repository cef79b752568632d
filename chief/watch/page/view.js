// What charts and timeline show: which axis, and which part of the history. Steps and times are converted by the curve of
// the loss, which has a point for (nearly) every step.
import { remember, remembered } from './dom.js';

class View extends EventTarget {
  axis = remembered('axis', 'step') === 'time' ? 'time' : 'step';
  logScale = remembered('log-scale', false) === true;
  smoothing = Math.min(0.99, Math.max(0, Number(remembered('smoothing', 0)) || 0));
  follow = 0;    // the last so many steps; 0: not
  part = null;   // {axis, from, to}: what was zoomed to
  curve = null;  // {step: [], at_ms: []}

  set(changes) {
    Object.assign(this, changes);
    for (const name of ['axis', 'smoothing']) if (name in changes) remember(name, this[name]);
    if ('logScale' in changes) remember('log-scale', this.logScale);
    this.dispatchEvent(new Event('change'));
  }

  zoom(axis, from, to) {
    this.set({ part: { axis, from, to }, follow: 0 });
  }

  showAll() {
    this.set({ part: null, follow: 0 });
  }

  // [from, to] in steps or milliseconds; null is the whole history.
  range(axis) {
    if (this.follow > 0 && this.curve?.step.length > 0) {
      const last = this.curve.step.at(-1);
      const steps = [Math.max(0, last - this.follow), last];
      return axis === 'step' ? steps : steps.map((step) => this.timeOf(step));
    }
    if (this.part === null) return null;
    const { from, to } = this.part;
    if (this.part.axis === axis) return [from, to];
    const convert = axis === 'time' ? (x) => this.timeOf(x) : (x) => this.stepOf(x);
    const range = [convert(from), convert(to)];
    if (range.some((x) => x === undefined)) return null;
    return axis === 'step' ? [Math.floor(range[0]), Math.max(Math.ceil(range[1]), Math.floor(range[0]) + 1)] : range;
  }

  // What charts show: the range, or all that the loss has, so that the charts share their axis.
  window(axis) {
    const range = this.range(axis);
    if (range !== null || this.curve === null || this.curve.step.length < 2) return range;
    const all = axis === 'step' ? this.curve.step : this.curve.at_ms;
    return [all[0], all.at(-1)];
  }

  timeOf(step) {
    return this.curve === null ? undefined : between(this.curve.step, this.curve.at_ms, step);
  }

  stepOf(ms) {
    return this.curve === null ? undefined : between(this.curve.at_ms, this.curve.step, ms);
  }
}

// The index of the first element that is not below x.
export function firstFrom(sorted, x) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The value of `ys` that belongs to x of `xs`, on the line between its neighbours; of the ends beyond them.
function between(xs, ys, x) {
  if (xs.length === 0) return undefined;
  const after = firstFrom(xs, x);
  if (after === 0) return ys[0];
  if (after === xs.length) return ys.at(-1);
  const width = xs[after] - xs[after - 1];
  const share = width > 0 ? (x - xs[after - 1]) / width : 1;
  return ys[after - 1] + share * (ys[after] - ys[after - 1]);
}

export const view = new View();
