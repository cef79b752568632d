// The series that charts show: asked for in full once, then only what is new. Of a part of the history, that part in
// detail.
import { ask } from './poll.js';
import { view } from './view.js';

const kPoints = 1500;      // of one answer
const kMostPoints = 4000;  // after so many it is asked for in full again, with fewer points

const address = (name) => `api/series/${name.split('/').map(encodeURIComponent).join('/')}`;

async function fetchSeries(name, from, to) {
  const limits = [['points', kPoints], ['from', from], ['to', to]].filter(([, value]) => value !== undefined);
  const answer = await ask(`${address(name)}?${limits.map(([key, value]) => `${key}=${value}`).join('&')}`);
  answer.joined = answer.low !== undefined;  // stretches of several values are points
  answer.low ??= answer.value.slice();
  answer.high ??= answer.value.slice();
  return answer;
}

const kFields = ['step', 'at_ms', 'value', 'low', 'high'];

// In full. The last stretch is told apart, so that the last value is that of the last step and no mean.
async function fetchFull(name) {
  const full = await fetchSeries(name);
  if (!full.joined || full.step.length < 2) return full;
  const last = await fetchSeries(name, full.step.at(-2) + 1);
  if (last.step.length > 0) for (const field of kFields) full[field].splice(-1, 1, ...last[field]);
  return full;
}

export class SeriesStore {
  list = [];             // of api/series
  #wanted = () => [];
  #kept = new Map();     // name → {full, fullPoints, part, partKey, partPoints}
  #history = '';

  // `wanted()` returns the names that are shown.
  constructor(wanted) {
    this.#wanted = wanted;
  }

  names() {
    return this.list.map((series) => series.name);
  }

  // Another term or lineage may have taken steps back: everything is asked for again.
  setHistory(key) {
    if (key === this.#history) return false;
    this.#history = key;
    for (const kept of this.#kept.values()) kept.fullPoints = kept.partPoints = -1;
    return true;
  }

  // What to draw of a series: the part that is zoomed to, as soon as it is there.
  get(name) {
    const kept = this.#kept.get(name);
    if (kept === undefined) return undefined;
    return kept.part !== undefined && this.#partKey() === kept.partKey ? kept.part : kept.full;
  }

  full(name) {
    return this.#kept.get(name)?.full;
  }

  #partKey() {
    const range = view.range('step');
    if (range === null) return '';
    return view.follow > 0 ? `last ${view.follow}` : range.join();
  }

  // Asks for what changed. True when something did.
  async refresh() {
    this.list = (await ask('api/series')).series;
    const points = new Map(this.list.map((series) => [series.name, series.points]));
    for (const name of this.#kept.keys()) if (!points.has(name)) this.#kept.delete(name);
    let changed = false;
    for (const name of new Set(['loss', ...this.#wanted()])) {
      if (!points.has(name)) continue;
      const kept = this.#kept.get(name) ?? { fullPoints: -1, partPoints: -1 };
      if (await this.#refreshFull(name, kept, points.get(name))) changed = true;
      this.#kept.set(name, kept);
      if (name === 'loss') view.curve = kept.full;
      if (await this.#refreshPart(name, kept, points.get(name))) changed = true;
    }
    return changed;
  }

  async #refreshFull(name, kept, points) {
    if (points === kept.fullPoints) return false;
    const { full } = kept;
    if (full === undefined || points < kept.fullPoints || kept.fullPoints < 0 || full.step.length > kMostPoints) {
      kept.full = await fetchFull(name);
    } else {
      const more = await fetchSeries(name, (full.step.at(-1) ?? -1) + 1);
      for (const field of kFields) full[field].push(...more[field]);
    }
    kept.fullPoints = points;
    return true;
  }

  async #refreshPart(name, kept, points) {
    const key = this.#partKey();
    if (key === '') {
      kept.part = undefined;
      return false;
    }
    if (kept.partKey === key && kept.partPoints === points) return false;
    const [from, to] = view.range('step');
    kept.part = await fetchSeries(name, Math.floor(from), Math.ceil(to));
    kept.partKey = key;
    kept.partPoints = points;
    return true;
  }
}
