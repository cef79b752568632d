// All charts, and the tools above them. Charts share axis, range and what is pointed at.
import { Chart, colour } from './chart.js';
import { byId, make, remember, remembered, setText, show } from './dom.js';
import { byName, stepTimeSeries } from './format.js';
import { SeriesStore } from './series.js';
import { view } from './view.js';

const kExtremes = 3;  // of the slowest and of the fastest workers
const kMostChosen = 8;
const kMarked = {
  lost: 'bad', crashed: 'bad', save_failed: 'bad', differed: 'bad', repaired: 'curve-3', left: 'curve-1', joined: 'curve-2', saved: 'curve-0', chief_started: 'text',
};

export class Charts {
  #charts = new Map();  // id → chart, in the order of the page
  #workers = [];
  #chosen = null;       // names of workers; null: the slowest and the fastest
  #added = remembered('series', []);
  #entries = [];
  pointed = null;

  constructor() {
    this.store = new SeriesStore(() => [...this.#charts.values()].flatMap((chart) => chart.spec.names()));
    if (!Array.isArray(this.#added)) this.#added = [];
    const marks = () => this.#marks();
    this.#add({ id: 'loss', title: 'Loss', names: () => ['loss'], wide: true, bars: true, smooth: true, log: true, marks, always: true });
    this.#add({ id: 'samples_per_second', title: 'Samples per second', names: () => ['samples_per_second'], bars: true, smooth: true, fromZero: true, marks });
    this.#add({ id: 'members', title: 'Workers that take part', names: () => ['cluster/workers'], steps: true, fromZero: true, marks });
    this.#add({ id: 'learning_rate', title: 'Learning rate', names: () => ['learning_rate'], bars: true });
    this.#add({ id: 'gradient_norm', title: 'Gradient norm', names: () => ['gradient_norm'], bars: true, smooth: true, log: true });
    this.#add({ id: 'step_ms', title: 'Step time by worker', unit: 'ms', names: () => this.plotted().map(stepTimeSeries),
      label: (name) => name.replace(/^worker\/(.*)\/step_ms$/, '$1'), wide: true, log: true });
    this.reset = make('button', { type: 'button', class: 'quiet', hidden: true }, 'slowest and fastest');
    this.reset.addEventListener('click', () => this.choose(null));
    this.#charts.get('step_ms').tools.append(this.reset);
    for (const name of this.#added) this.#addChosen(name);
    this.#tools();
    view.addEventListener('change', () => {
      this.redraw();
      this.poll?.now();
    });
    document.addEventListener('theme', () => this.redraw());
  }

  async refresh() {
    const before = this.store.list.length;
    const changed = await this.store.refresh();
    try {
      if (this.#evaluations() || changed || before !== this.store.list.length) this.redraw();
      this.#offer();
      this.shown?.();
    } catch (error) {
      console.error(error);  // a mistake of this page: the server did answer
    }
  }

  setJob(job) {
    this.#workers = job.workers ?? [];
    if (this.store.setHistory(`${job.lineage} ${job.term}`)) this.poll?.now();
  }

  setEntries(entries) {
    this.#entries = entries;
  }

  redraw() {
    for (const chart of this.#charts.values()) chart.update();
    show(this.reset, this.#chosen !== null);
    show(byId('zoom-out'), view.part !== null);
    byId('follow').value = view.part !== null ? 'custom' : String(view.follow);
    byId('axis').value = view.axis;
    byId('log-scale').checked = view.logScale;
    byId('smoothing').value = view.smoothing;
    setText(byId('smoothing-value'), view.smoothing);
  }

  // All charts show the values at x; null: the last ones.
  point(x, from) {
    this.pointed = x;
    for (const chart of this.#charts.values()) {
      if (chart !== from) chart.point(x);
      else if (x !== null) chart.point(x);
    }
  }

  // ---- which workers ------------------------------------------------------------------------------------------------
  hasStepTimes(worker) {
    return this.store.names().includes(stepTimeSeries(worker));
  }

  plotted() {
    if (this.#chosen !== null) return this.#chosen;
    const known = new Set(this.store.names());
    const timed = this.#workers.filter((worker) => worker.step_ms > 0 && known.has(stepTimeSeries(worker.name)));
    timed.sort((a, b) => b.step_ms - a.step_ms || byName(a.name, b.name));
    const names = timed.map((worker) => worker.name);
    if (names.length === 0) return [...known].filter((name) => /^worker\/.*\/step_ms$/.test(name)).sort(byName).slice(0, 2 * kExtremes).map((name) => name.slice(7, -8));
    return names.length <= 2 * kExtremes ? names : [...names.slice(0, kExtremes), ...names.slice(-kExtremes)];
  }

  choose(names) {
    this.#chosen = names === null ? null : names.slice(-kMostChosen);
    this.redraw();
    this.poll?.now();
  }

  // ---- series that a job has ----------------------------------------------------------------------------------------
  #add(spec) {
    const chart = new Chart(spec, this.store, this);
    this.#charts.set(spec.id, chart);
    byId('chart-grid').append(chart.element);
    return chart;
  }

  // A chart for each metric of the evaluations. True when one is new.
  #evaluations() {
    let added = false;
    for (const name of this.store.names().filter((one) => one.startsWith('evaluation/')).sort(byName)) {
      if (this.#charts.has(name)) continue;
      const chart = this.#add({ id: name, title: `Evaluation: ${name.slice('evaluation/'.length)}`, names: () => [name], points: true });
      this.#charts.get('step_ms').element.before(chart.element);
      added = true;
    }
    if (added) this.poll?.now();
    return added;
  }

  #offer() {
    const shown = new Set([...this.#charts.values()].flatMap((chart) => (chart.spec.id === 'step_ms' ? [] : chart.spec.names())));
    const names = this.store.names().filter((name) => !shown.has(name)).sort(byName);
    const select = byId('add-series');
    if (select.offered === names.join('\n') || document.activeElement === select) return;
    select.offered = names.join('\n');
    select.replaceChildren(make('option', { value: '' }, 'choose…'), ...names.map((name) => make('option', { value: name }, name)));
  }

  #addChosen(name) {
    if (this.#charts.has(name)) return;
    const chart = this.#add({ id: name, title: name, names: () => [name], bars: true, smooth: true, log: true });
    const remove = make('button', { type: 'button', class: 'quiet', 'aria-label': `Remove ${name}` }, '×');
    remove.addEventListener('click', () => {
      chart.element.remove();
      this.#charts.delete(name);
      this.#keep(this.#added.filter((one) => one !== name));
    });
    chart.tools.append(remove);
  }

  #keep(added) {
    this.#added = added;
    remember('series', added);
    this.#offer();
  }

  #tools() {
    byId('axis').addEventListener('change', (event) => view.set({ axis: event.target.value }));
    byId('follow').addEventListener('change', (event) => view.set({ part: null, follow: Number(event.target.value) }));
    byId('zoom-out').addEventListener('click', () => view.showAll());
    byId('smoothing').addEventListener('input', (event) => view.set({ smoothing: Number(event.target.value) }));
    byId('log-scale').addEventListener('change', (event) => view.set({ logScale: event.target.checked }));
    byId('add-series').addEventListener('change', (event) => {
      const name = event.target.value;
      if (name === '') return;
      event.target.value = '';
      event.target.blur();
      this.#addChosen(name);
      this.#keep([...this.#added, name]);
      this.poll?.now();
    });
  }

  #marks() {
    const colours = Object.fromEntries(Object.entries(kMarked).map(([kind, name]) => [kind, colour(name)]));
    return this.#entries.filter((entry) => entry.kind in colours)
      .map((entry) => ({ at_ms: entry.at_ms, step: entry.step ?? view.stepOf(entry.at_ms), colour: colours[entry.kind] }));
  }
}
