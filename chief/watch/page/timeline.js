// The timeline: a row for the chief, one for saves, one per worker; and all events as a table. The rows are a canvas, which
// is quick also with 200 workers; the table says the same in words.
import { colour } from './chart.js';
import { byId, keyed, make, setText, show } from './dom.js';
import { clock, count, duration } from './format.js';
import { buildTimeline, kKinds } from './timeline_model.js';
import { view } from './view.js';

const kHeadRows = 54;      // axis, chief, saves
const kListed = 300;       // events in the table
const kNear = 6;           // pixels from a mark that still mean it
const font = (size) => `${size}px ${getComputedStyle(document.body).fontFamily}`;

export class Timeline {
  #entries = [];
  #model = null;
  #leftOut = 0;
  #drag = null;

  constructor() {
    this.head = make('canvas', { class: 'head', 'aria-hidden': 'true' });
    this.body = make('canvas', { role: 'img' });
    this.scroll = make('div', { class: 'scroll rows', tabindex: '0', role: 'region', 'aria-label': 'Timeline of the workers' }, this.head, this.body);
    this.tip = make('p', { class: 'tip', hidden: true });
    byId('timeline-panel').append(this.scroll, this.tip);
    byId('timeline-legend').append(...['joined', 'left', 'lost', 'crashed', 'saved', 'repaired', 'chief_started'].map((kind) => {
      const canvas = make('canvas', { width: 28, height: 28, 'aria-hidden': 'true' });
      canvas.kind = kind;
      return make('li', {}, canvas, kKinds[kind].label);
    }));
    for (const canvas of [this.head, this.body]) {
      canvas.addEventListener('pointermove', (event) => this.#move(canvas, event));
      canvas.addEventListener('pointerleave', () => show(this.tip, false));
      canvas.addEventListener('pointerdown', (event) => event.pointerType === 'mouse' && event.button === 0 && this.#begin(canvas, event));
      canvas.addEventListener('pointerup', (event) => this.#end(event));
      canvas.addEventListener('dblclick', () => view.showAll());
    }
    byId('events-kind').addEventListener('change', () => this.#list());
    view.addEventListener('change', () => this.draw());
    document.addEventListener('theme', () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }

  set({ entries, left_out: leftOut }, now) {
    this.#entries = entries;
    this.#leftOut = leftOut ?? 0;
    this.#model = buildTimeline(entries, now);
    this.draw();
    this.#list();
  }

  // Time went on, and nothing happened.
  advance(now) {
    if (this.#entries.length === 0) return;
    this.#model = buildTimeline(this.#entries, now);
    this.draw();
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------
  draw() {
    const model = this.#model;
    const some = model !== null && this.#entries.length > 0;
    show(byId('timeline-panel'), some);
    show(byId('timeline-empty'), !some);
    show(byId('events-panel'), some);
    show(byId('timeline-legend'), some);
    if (!some) return;
    const range = view.range('time') ?? [model.from, model.to];
    const width = this.scroll.clientWidth;
    if (width === 0) return;
    const names = width < 600 ? 84 : 130;
    const rows = model.workers.length;
    const height = rows <= 24 ? 20 : rows <= 60 ? 16 : 13;
    this.scale = { names, width, height, from: range[0], to: Math.max(range[1], range[0] + 1), inner: width - names - 10 };
    setText(byId('timeline-span'), `${clock(range[0])} to ${clock(range[1])}, ${duration((range[1] - range[0]) / 1000)}`);
    this.body.setAttribute('aria-label', `${count(rows)} workers; ${count(this.#entries.length)} events, listed below`);
    this.#drawHead(model);
    this.#drawBody(model);
    for (const canvas of byId('timeline-legend').querySelectorAll('canvas')) {
      const pen = canvas.getContext('2d');
      pen.clearRect(0, 0, 28, 28);
      pen.setTransform(2, 0, 0, 2, 0, 0);
      drawMark(pen, kKinds[canvas.kind], 7, 7);
      pen.setTransform(1, 0, 0, 1, 0, 0);
    }
  }

  #x(ms) {
    const { names, inner, from, to } = this.scale;
    return names + ((ms - from) / (to - from)) * inner;
  }

  #time(x) {
    const { names, inner, from, to } = this.scale;
    return from + ((x - names) / inner) * (to - from);
  }

  #pen(canvas, height) {
    const ratio = window.devicePixelRatio || 1;
    const { width } = this.scale;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    pen.textBaseline = 'middle';
    return pen;
  }

  // What lies beside the plot is cut off.
  #clip(pen, height) {
    pen.save();
    pen.beginPath();
    pen.rect(this.scale.names - 1, 0, this.scale.inner + 10, height);
    pen.clip();
  }

  #bar(pen, from, to, y, height) {
    const left = Math.max(this.#x(from), this.scale.names - 1);
    const right = Math.min(this.#x(to), this.scale.width);
    if (right >= left) pen.fillRect(left, y, Math.max(1, right - left), height);
  }

  #drawHead(model) {
    const pen = this.#pen(this.head, kHeadRows);
    const { names } = this.scale;
    pen.font = font(11);
    pen.fillStyle = colour('panel');
    pen.fillRect(0, 0, this.scale.width, kHeadRows);
    pen.fillStyle = colour('dim');
    pen.fillText('chief', 12, 27);
    pen.fillText('saves', 12, 44);
    this.#clip(pen, kHeadRows);
    pen.textAlign = 'center';
    for (const [ms, label] of ticks(this.scale.from, this.scale.to, this.scale.inner / 90)) {
      pen.fillStyle = colour('dim');
      if (this.#x(ms) > names + 24) pen.fillText(label, this.#x(ms), 9);
      pen.fillStyle = colour('line');
      pen.fillRect(this.#x(ms), 16, 1, kHeadRows);
    }
    pen.fillStyle = colour('bar-spare');
    for (const [from, to] of model.chief.bars) this.#bar(pen, from, to, 23, 8);
    for (const entry of model.chief.marks) drawMark(pen, kKinds[entry.kind], this.#x(entry.at_ms), 27);
    for (const entry of model.saves) drawMark(pen, kKinds[entry.kind], this.#x(entry.at_ms), 44);
    pen.restore();
    pen.fillStyle = colour('line');
    pen.fillRect(0, kHeadRows - 1, this.scale.width, 1);
  }

  #drawBody(model) {
    const { height, names, width } = this.scale;
    const tall = model.workers.length * height + 6;
    const pen = this.#pen(this.body, tall);
    this.#clip(pen, tall);
    // Bands that are too narrow to be told apart are left out.
    const bands = model.generations.length * 4 < this.scale.inner ? model.generations : [];
    bands.forEach((generation, i) => {
      pen.fillStyle = colour(i % 2 === 0 ? 'band' : 'panel');
      this.#bar(pen, generation.from, generation.to, 0, tall);
    });
    pen.restore();
    pen.font = font(Math.min(12, height - 2));
    model.workers.forEach((worker, i) => {
      const y = i * height + 3;
      pen.fillStyle = colour('text');
      pen.fillText(shorten(pen, worker.name, names - 22), 12, y + height / 2);
      this.#clip(pen, tall);
      pen.fillStyle = colour('bar-spare');
      for (const [from, to] of worker.connected) this.#bar(pen, from, to, y + height * 0.35, height * 0.3);
      pen.fillStyle = colour('bar-member');
      for (const [from, to] of worker.member) this.#bar(pen, from, to, y + height * 0.15, height * 0.7);
      for (const entry of worker.marks) drawMark(pen, kKinds[entry.kind], this.#x(entry.at_ms), y + height / 2, Math.min(5, height * 0.36));
      pen.restore();
    });
    pen.fillStyle = colour('line');
    pen.fillRect(names - 1, 0, 1, tall);
    if (this.#drag !== null) {
      pen.fillStyle = colour('select');
      const [a, b] = [this.#drag.from, this.#drag.to].sort((p, q) => p - q);
      pen.fillRect(a, 0, Math.min(b, width) - a, tall);
    }
  }

  // ---- pointing and zooming -----------------------------------------------------------------------------------------
  #begin(canvas, event) {
    if (event.offsetX < this.scale.names) return;
    canvas.setPointerCapture(event.pointerId);
    this.#drag = { from: event.offsetX, to: event.offsetX };
  }

  #end() {
    if (this.#drag === null) return;
    const [from, to] = [this.#drag.from, this.#drag.to].sort((a, b) => a - b);
    this.#drag = null;
    if (to - from > 4) view.zoom('time', this.#time(from), this.#time(to));
    else this.draw();
  }

  #move(canvas, event) {
    if (this.scale === undefined) return;
    if (this.#drag !== null) {
      this.#drag.to = Math.max(this.scale.names, event.offsetX);
      this.#drawBody(this.#model);
      return;
    }
    const text = this.#textAt(canvas, event.offsetX, event.offsetY);
    show(this.tip, text !== '');
    if (text === '') return;
    setText(this.tip, text);
    const box = byId('timeline-panel').getBoundingClientRect();
    const x = event.clientX - box.left;
    this.tip.style.left = `${Math.max(8, Math.min(x + 12, box.width - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  #textAt(canvas, x, y) {
    const model = this.#model;
    const worker = canvas === this.body ? model.workers[Math.floor((y - 3) / this.scale.height)] : undefined;
    const marks = canvas === this.body ? worker?.marks ?? [] : y < 35 ? model.chief.marks : model.saves;
    const near = marks.map((entry) => [Math.abs(this.#x(entry.at_ms) - x), entry]).filter(([distance]) => distance <= kNear).sort((a, b) => a[0] - b[0]);
    if (near.length > 0) return describe(near[0][1]) + (near.length > 1 ? ` (and ${near.length - 1} more here)` : '');
    if (worker === undefined || x < this.scale.names) return worker?.name ?? '';
    const at = this.#time(x);
    const within = (bars) => bars.some(([from, to]) => from <= at && at <= to);
    const generation = model.generations.find(({ from, to }) => from <= at && at <= to);
    const state = within(worker.member) ? `takes part${generation ? ` in generation ${generation.name}` : ''}` : within(worker.connected) ? 'is connected' : 'is not here';
    return `${worker.name} ${state} at ${clock(at)}`;
  }

  // ---- in words -----------------------------------------------------------------------------------------------------
  #list() {
    const group = byId('events-kind').value;
    const matching = this.#entries.filter((entry) => group === '' || kKinds[entry.kind]?.group === group);
    const listed = matching.slice(-kListed).reverse();
    const notes = [];
    if (matching.length > listed.length) notes.push(`the newest ${count(listed.length)} of ${count(matching.length)}`);
    else notes.push(count(matching.length));
    if (this.#leftOut > 0) notes.push(`${count(this.#leftOut)} older ones are left out`);
    setText(byId('events-count'), notes.join('; '));
    const seen = new Map();
    const keyOf = (entry) => {
      const key = `${entry.at_ms} ${entry.kind} ${entry.worker ?? ''} ${entry.step ?? ''}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
      return `${key} ${seen.get(key)}`;
    };
    const tbody = byId('events-table').tBodies[0];
    keyed(tbody, listed, keyOf, () => make('tr', {}, make('td', { class: 'number' }), make('td'), make('td'), make('td', { class: 'number' }), make('td', { class: 'wrap' })), (tr, entry) => {
      const kind = kKinds[entry.kind];
      tr.className = kind?.group === 'faults' ? 'fault' : '';
      const texts = [clock(entry.at_ms), kind?.label ?? entry.kind, entry.worker ?? '', entry.step === undefined ? '' : count(entry.step), details(entry)];
      texts.forEach((text, i) => setText(tr.cells[i], text));
    });
  }
}

function details(entry) {
  const parts = [];
  if (entry.kind === 'generation') parts.push(`${entry.generation ?? ''}: ${listOf(entry.workers ?? [])}`);
  if (entry.text) parts.push(entry.text);
  if (entry.exit_code !== undefined) parts.push(`exit code ${entry.exit_code}`);
  return parts.join(', ');
}

const listOf = (names) => (names.length > 12 ? `${names.slice(0, 10).join(', ')} and ${names.length - 10} more` : names.join(', '));

function describe(entry) {
  const step = entry.step === undefined ? '' : ` at step ${count(entry.step)}`;
  const more = details(entry);
  return `${entry.worker ? `${entry.worker} ` : ''}${kKinds[entry.kind].label}${step}, ${clock(entry.at_ms)}${more ? `: ${more}` : ''}`;
}

function shorten(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) --end;
  return `${text.slice(0, end)}…`;
}

// [[ms, label]] at round times, about `most` of them.
function ticks(from, to, most) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800].map((s) => 1000 * s);
  const step = steps.find((one) => (to - from) / one <= most) ?? steps.at(-1);
  const zone = new Date(from).getTimezoneOffset() * 60000;
  const result = [];
  for (let ms = Math.ceil((from - zone) / step) * step + zone; ms <= to; ms += step) {
    const text = new Date(ms);
    result.push([ms, step >= 86400000 ? text.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) : clock(ms, ms).slice(0, step >= 60000 ? 5 : 8)]);
  }
  return result;
}

// A mark of a shape of its own, so that it does not rest on its colour.
function drawMark(pen, { shape, colour: name }, x, y, r = 4.5) {
  pen.fillStyle = pen.strokeStyle = colour(name);
  pen.lineWidth = 1.8;
  pen.beginPath();
  const polygon = (...points) => points.forEach(([dx, dy], i) => pen[i === 0 ? 'moveTo' : 'lineTo'](x + dx * r, y + dy * r));
  if (shape === 'up') polygon([-1, 0.9], [0, -1], [1, 0.9]);
  if (shape === 'down') polygon([-1, -0.9], [0, 1], [1, -0.9]);
  if (shape === 'left') polygon([0.9, -1], [-1, 0], [0.9, 1]);
  if (shape === 'right') polygon([-0.7, -0.8], [0.7, 0], [-0.7, 0.8]);
  if (shape === 'diamond') polygon([0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]);
  if (shape === 'square') polygon([-0.8, -0.8], [0.8, -0.8], [0.8, 0.8], [-0.8, 0.8]);
  if (shape === 'ring') pen.arc(x, y, r * 0.75, 0, 2 * Math.PI);
  if (shape === 'cross' || shape === 'star') {
    polygon([-0.9, -0.9], [0.9, 0.9]);
    pen.moveTo(x + 0.9 * r, y - 0.9 * r);
    pen.lineTo(x - 0.9 * r, y + 0.9 * r);
  }
  if (shape === 'star') {
    pen.moveTo(x, y - 1.2 * r);
    pen.lineTo(x, y + 1.2 * r);
  }
  if (shape === 'cross' || shape === 'star' || shape === 'ring') {
    pen.stroke();
    return;
  }
  pen.closePath();
  pen.fill();
}
