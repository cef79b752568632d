// The table of workers: sorted by any column, filtered, and where one chooses whose step times are drawn.
import { byId, keyed, make, remember, remembered, setText, show } from './dom.js';
import { byName, count, decimals, number, percent } from './format.js';

const kUnknown = Number.NEGATIVE_INFINITY;
const text = (value) => (value === undefined ? '–' : value);

// value: to sort by; show: the text; `down`: sorted from the greatest at the first click.
const kColumns = [
  { key: 'name', title: 'Worker', value: (w) => w.name, show: (w) => w.name },
  { key: 'state', title: 'State', value: (w) => stateOf(w), show: (w) => stateOf(w) },
  { key: 'rank', title: 'Rank', number: true, value: (w) => (w.rank >= 0 ? w.rank : Infinity), show: (w) => (w.rank >= 0 ? count(w.rank) : '–') },
  { key: 'step', title: 'Step', number: true, down: true, show: (w) => count(w.step) },
  { key: 'samples_per_second', title: 'Samples/s', number: true, down: true, show: (w) => number(w.samples_per_second) },
  { key: 'step_ms', title: 'Step ms', number: true, down: true, show: (w) => decimals(w.step_ms) },
  { key: 'compute_share', title: 'Compute · reduce · data', down: true, split: true, hint: 'Share of its step time in computing, in all-reduce (waiting for others included) and in reading data' },
  { key: 'slowdown', title: 'Slowdown', number: true, down: true, show: (w) => (w.slowdown > 0 ? `${w.slowdown.toFixed(2)}×` : '–'), hint: 'Its own time per step over the median of the members' },
  { key: 'joins', title: 'Joined', number: true, down: true, show: (w) => count(w.joins) },
  { key: 'losses', title: 'Lost', number: true, down: true, show: (w) => count(w.losses), hint: 'Killed, cut off or silent' },
  { key: 'preemptions', title: 'Left', number: true, down: true, show: (w) => count(w.preemptions), hint: 'Left on notice' },
  { key: 'crashes', title: 'Crashed', number: true, down: true, show: (w) => count(w.crashes) },
  { key: 'host', title: 'Host', value: (w) => w.host ?? '', show: (w) => text(w.host) },
  { key: 'device', title: 'Device', value: (w) => w.device ?? '', show: (w) => text(w.device) },
];

const isGone = (worker) => worker.state === 'gone' || (worker.state === undefined && !worker.connected);

function stateOf(worker) {
  if (isGone(worker)) return 'gone';
  return worker.straggler ? `${worker.state ?? 'connected'}, straggler` : worker.state ?? 'connected';
}

export class Workers {
  #workers = [];
  #drained = [];
  #charts;
  #sort = remembered('workers-sort', { key: 'name', down: false });

  constructor(charts) {
    this.#charts = charts;
    if (!kColumns.some((column) => column.key === this.#sort?.key)) this.#sort = { key: 'name', down: false };
    const head = byId('workers-table').tHead.rows[0];
    for (const column of kColumns) {
      const button = make('button', { type: 'button', title: column.hint }, column.title);
      button.addEventListener('click', () => this.#sortBy(column));
      head.append(make('th', { class: column.number ? 'number' : undefined, scope: 'col', 'data-key': column.key }, button));
    }
    head.append(make('th', { scope: 'col', title: 'Draw its step times' }, 'Chart'));
    byId('workers-filter').addEventListener('input', () => this.show());
  }

  set(job) {
    this.#workers = job.workers ?? [];
    this.#drained = job.drained ?? [];
    this.show();
    showHosts(job.hosts ?? [], this.#drained);
  }

  show() {
    const words = byId('workers-filter').value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (worker) => {
      const all = [worker.name, worker.host, worker.device, stateOf(worker)].join(' ').toLowerCase();
      return words.every((word) => all.includes(word));
    };
    const shown = this.#workers.filter(matches).sort((a, b) => this.#order(a, b));
    const members = this.#workers.filter((worker) => worker.state === 'member').length;
    setText(byId('workers-count'), shown.length < this.#workers.length ? `${count(shown.length)} of ${count(this.#workers.length)} shown` : `${count(members)} of ${count(this.#workers.length)} take part`);
    for (const th of byId('workers-table').tHead.querySelectorAll('[data-key]')) {
      const sorted = th.dataset.key === this.#sort.key ? (this.#sort.down ? 'descending' : 'ascending') : 'none';
      if (th.getAttribute('aria-sort') !== sorted) th.setAttribute('aria-sort', sorted);
    }
    show(byId('workers-table'), this.#workers.length > 0);
    show(byId('workers-empty'), shown.length === 0);
    setText(byId('workers-empty'), this.#workers.length === 0 ? 'No worker has come yet. lockstep worker --job DIR starts one.' : 'No worker matches the filter.');
    const plotted = new Set(this.#charts.plotted());
    keyed(byId('workers-table').tBodies[0], shown, (worker) => worker.name, (worker) => this.#row(worker), (tr, worker) => this.#update(tr, worker, plotted));
  }

  #sortBy(column) {
    const same = this.#sort.key === column.key;
    this.#sort = { key: column.key, down: same ? !this.#sort.down : column.down === true };
    remember('workers-sort', this.#sort);
    this.show();
  }

  #order(a, b) {
    const column = kColumns.find((one) => one.key === this.#sort.key);
    const value = (worker) => (column.value ? column.value(worker) : worker[column.key] ?? kUnknown);
    const [x, y] = [value(a), value(b)];
    const order = typeof x === 'string' ? byName(x, y) : x === y ? 0 : x < y ? -1 : 1;
    return (this.#sort.down ? -order : order) || byName(a.name, b.name);
  }

  #row(worker) {
    const tr = make('tr');
    for (const column of kColumns) {
      const cell = make(column.key === 'name' ? 'th' : 'td', { class: column.number ? 'number' : undefined, scope: column.key === 'name' ? 'row' : undefined });
      if (column.split) cell.append(make('span', { class: 'stack small', role: 'img' }, make('i', { class: 'part compute' }), make('i', { class: 'part reduce' }), make('i', { class: 'part data' })), make('span', { class: 'split' }));
      tr.append(cell);
    }
    const box = make('input', { type: 'checkbox', 'aria-label': `Draw the step times of ${worker.name}` });
    box.addEventListener('change', () => {
      const others = this.#charts.plotted().filter((name) => name !== worker.name);
      this.#charts.choose(box.checked ? [...others, worker.name] : others);
      this.show();
    });
    tr.append(make('td', { class: 'middle' }, box));
    return tr;
  }

  #update(tr, worker, plotted) {
    const classes = [isGone(worker) ? 'gone' : '', worker.straggler ? 'slow' : ''].filter(Boolean).join(' ');
    if (tr.className !== classes) tr.className = classes;
    kColumns.forEach((column, i) => {
      const cell = tr.cells[i];
      if (!column.split) {
        setText(cell, column.show(worker));
        if (column.key === 'losses' || column.key === 'crashes') cell.classList.toggle('zero', !(worker[column.key] > 0));
        return;
      }
      const shares = [worker.compute_share, worker.all_reduce_share, worker.data_share];
      const known = shares.some((share) => share > 0);
      shares.forEach((share, part) => (cell.firstChild.children[part].style.width = `${100 * Math.min(1, Math.max(0, share ?? 0))}%`));
      show(cell.firstChild, known);
      setText(cell.lastChild, known ? shares.map((share) => Math.round(100 * (share ?? 0))).join(' · ') : '–');
      cell.firstChild.setAttribute('aria-label', `compute ${percent(shares[0])}, all-reduce ${percent(shares[1])}, data ${percent(shares[2])}`);
    });
    const box = tr.lastElementChild.firstElementChild;
    box.checked = plotted.has(worker.name);
    box.disabled = !this.#charts.hasStepTimes(worker.name);
  }
}

function showHosts(hosts, drained) {
  const panel = byId('hosts');
  const lines = [
    ...hosts.map((host) => `Host ${host.host}: ${count(host.failures)} ${host.failures === 1 ? 'failure' : 'failures'}${host.excluded ? ', left out' : ''}${host.cause ? `. The newest: ${host.cause}` : ''}`),
    ...(drained.length > 0 ? [`Kept away (drained): ${drained.join(', ')}`] : []),
  ];
  show(panel, lines.length > 0);
  keyed(panel, lines.map((line) => ({ line })), (one) => one.line, (one) => make('p', {}, one.line), () => {});
}
