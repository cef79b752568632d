// One chart: a figure with a title, the last value as text, and curves drawn by dygraphs.
import { make, setText, show } from './dom.js';
import { clock, count, number, short } from './format.js';
import { firstFrom, view } from './view.js';

// What dygraphs writes as HTML is left out: the values at the pointer are shown by this file, as text.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend && plugin !== Dygraph.Plugins.ChartLabels);

// A colour of page.css, by name.
const colours = new Map();
document.addEventListener('theme', () => colours.clear());
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}
const kCurves = 8;
export const curveColour = (index) => colour(`curve-${index % kCurves}`);

const coarse = matchMedia('(pointer: coarse)');

export class Chart {
  #graph;
  #drawn = {};     // what the graph was made with
  #rows = [];
  #xs = null;      // of the rows, once they are asked for
  #hovered = null;

  // spec: {id, title, unit, names(): […], wide, bars: one series with its low and high, points: each is marked, steps}
  // store: of series; charts: all of them, which share what is pointed at; marks(): [{x, colour}] below the curves.
  constructor(spec, store, charts) {
    this.spec = spec;
    this.store = store;
    this.charts = charts;
    this.title = make('h3', { id: `chart-${spec.id}-title` }, spec.title);
    this.readout = make('span', { class: 'figure readout' });
    this.plot = make('div', { class: 'plot', tabindex: '0', role: 'img' });
    this.note = make('p', { class: 'note-line', hidden: true });
    this.legend = make('ul', { class: 'legend', hidden: true });
    this.tools = make('span', { class: 'chart-tools' });
    this.element = make('figure', { class: `panel chart${spec.wide ? ' wide' : ''}`, id: `chart-${spec.id}`, 'aria-labelledby': this.title.id },
      make('figcaption', {}, this.title, this.readout, this.tools), this.plot, this.note, this.legend);
    this.plot.addEventListener('keydown', (event) => this.#key(event));
    this.plot.addEventListener('blur', () => this.charts.point(null, this));
  }

  names() {
    return this.spec.names().filter((name) => this.store.get(name) !== undefined);
  }

  update() {
    const names = this.names();
    const series = names.map((name) => this.store.get(name));
    const empty = series.every((one) => one.step.length === 0);
    show(this.element, !empty || this.spec.always === true);
    if (empty) {
      this.#graph?.destroy();
      this.#graph = undefined;
      setText(this.readout, 'no values yet');
      this.plot.setAttribute('aria-label', `${this.spec.title}: no values yet`);
      return;
    }
    this.#xs = null;
    this.#rows = this.spec.bars ? rowsWithBars(series[0]) : rowsOfMany(series);
    this.#draw(names);
    this.#say(names, series);
  }

  // ---- what it says -------------------------------------------------------------------------------------------------
  #say(names, series) {
    const value = (y) => `${number(y)}${this.spec.unit ? ` ${this.spec.unit}` : ''}`;
    const lines = names.map((name, i) => {
      const last = series[i].step.length - 1;
      return { name: this.spec.label?.(name) ?? name, value: value(series[i].value[last]), step: series[i].step[last], index: i };
    });
    if (names.length === 1) this.last = `${lines[0].value} at step ${count(lines[0].step)}`;
    else this.last = '';
    if (this.#hovered === null) setText(this.readout, this.last);
    this.plot.setAttribute('aria-label', names.length === 1 ? `${this.spec.title}: ${this.last}; ${extent(series[0], value)}`
      : `${this.spec.title}: ${lines.map((line) => `${line.name} ${line.value}`).join(', ')}`);
    show(this.legend, names.length > 1);
    if (names.length > 1) {
      this.legend.replaceChildren(...lines.map((line) => make('li', {}, swatch(line.index), `${line.name} `, make('b', {}, line.value))));
    }
    const wrong = series.flatMap((one) => one.step.filter((_, i) => one.value[i] === null));
    show(this.note, wrong.length > 0);
    if (wrong.length > 0) setText(this.note, `NaN or infinite at ${wrong.length === 1 ? 'step' : `${count(wrong.length)} points, first at step`} ${count(wrong[0])}`);
  }

  // Shows the values at x, or the last ones.
  point(x) {
    this.#hovered = x;
    if (this.#graph === undefined) return;
    if (x === null) {
      this.#graph.clearSelection();
      setText(this.readout, this.last);
      return;
    }
    const row = this.#nearest(x);
    if (this.#graph.getSelection() !== row) this.#graph.setSelection(row);
    setText(this.readout, this.#valuesAt(row));
  }

  #nearest(x) {
    const xs = (this.#xs ??= this.#rows.map((row) => Number(row[0])));
    const after = firstFrom(xs, x);
    if (after === 0) return 0;
    if (after === xs.length) return xs.length - 1;
    return x - xs[after - 1] < xs[after] - x ? after - 1 : after;
  }

  #valuesAt(row) {
    const [x, ...columns] = this.#rows[row];
    const at = view.axis === 'step' ? `step ${count(x)}` : clock(Number(x));
    if (!this.spec.bars) {
      const parts = columns.map((y, i) => (y === null || columns.length === 1 ? '' : `${this.spec.label?.(this.#drawn.names[i]) ?? this.#drawn.names[i]} ${number(y)}`)).filter(Boolean);
      return `${columns.length === 1 ? number(columns[0]) : parts.slice(0, 6).join(' · ')} at ${at}`;
    }
    const [low, mean, high] = columns[0];
    const smooth = view.smoothing > 0 && this.spec.smooth ? ` · smoothed ${number(columns[1][1])}` : '';
    return `${number(mean)}${low < high ? ` (${number(low)} to ${number(high)})` : ''}${smooth} at ${at}`;
  }

  // ---- how it is drawn ----------------------------------------------------------------------------------------------
  #draw(names) {
    const logscale = view.logScale && this.spec.log === true;
    const kind = JSON.stringify([names, view.axis, logscale]);
    const options = {
      file: this.#rows.map((row) => present(row, logscale)),
      dateWindow: view.window(view.axis),
      colors: this.spec.bars ? [curveColour(0), curveColour(1)] : names.map((_, i) => curveColour(i)),
      axisLineColor: colour('line'),
      gridLineColor: colour('grid'),
      gridLineWidth: 1,
      visibility: this.spec.bars ? [true, view.smoothing > 0 && this.spec.smooth === true] : names.map(() => true),
      strokeWidth: this.spec.bars && view.smoothing > 0 && this.spec.smooth ? 0.6 : 1.5,
      series: this.spec.bars ? { smoothed: { strokeWidth: 2 } } : {},
    };
    if (this.#graph !== undefined && this.#drawn.kind === kind) {
      this.#graph.updateOptions(options);
    } else {
      this.#graph?.destroy();
      const { file, ...rest } = options;
      this.#graph = new Dygraph(this.plot, file, { ...rest, ...this.#fixed(names, logscale) });
    }
    this.#drawn = { kind, names };
    if (this.#hovered !== null) this.point(this.#hovered);
  }

  #fixed(names, logscale) {
    return {
      labels: ['x', ...(this.spec.bars ? ['value', 'smoothed'] : names)],
      customBars: this.spec.bars === true,
      logscale,
      connectSeparatedPoints: !this.spec.bars,
      stepPlot: this.spec.steps === true,
      drawPoints: this.spec.points === true,
      pointSize: 2.5,
      fillAlpha: 0.2,
      highlightCircleSize: 3,
      rightGap: 8,
      resizable: 'passive',
      axes: {
        x: view.axis === 'step' ? { axisLabelFormatter: short, pixelsPerLabel: 70, axisLabelWidth: 60 } : { pixelsPerLabel: 80, axisLabelWidth: 70 },
        y: { axisLabelFormatter: short, axisLabelWidth: 46, pixelsPerLabel: 26, includeZero: this.spec.fromZero === true },
      },
      axisLabelFontSize: 11,
      // Fingers scroll the page; a mouse zooms.
      ...(coarse.matches ? { interactionModel: {} } : {}),
      underlayCallback: (canvas, area, graph) => this.#underlay(canvas, area, graph),
      zoomCallback: (from, to) => this.#zoomed(from, to),
      highlightCallback: (_, x) => this.charts.point(x, this),
      unhighlightCallback: () => this.charts.point(null, this),
    };
  }

  // A tick at the bottom for everything that happened.
  #underlay(canvas, area, graph) {
    let taken = -2;
    for (const mark of this.spec.marks?.() ?? []) {
      const x = graph.toDomXCoord(view.axis === 'step' ? mark.step : mark.at_ms);
      if (!(x >= area.x && x <= area.x + area.w) || x < taken + 1) continue;
      taken = x;
      canvas.fillStyle = mark.colour;
      canvas.fillRect(Math.round(x) - 1, area.y + area.h - 7, 2, 7);
    }
  }

  #zoomed(from, to) {
    const [first, last] = this.#extremes();
    if (from <= first && to >= last) view.showAll();
    else view.zoom(view.axis, from, to);
  }

  // Of the whole history, also while a part is shown.
  #extremes() {
    const all = view.curve === null ? [] : view.axis === 'step' ? view.curve.step : view.curve.at_ms;
    return all.length > 1 ? [all[0], all.at(-1)] : this.#graph.xAxisExtremes();
  }

  #key(event) {
    if (this.#graph === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    const last = this.#rows.length - 1;
    const by = event.shiftKey ? 10 : 1;
    const here = this.#hovered === null ? last + 1 : this.#nearest(this.#hovered);
    const go = { ArrowLeft: here - by, ArrowRight: here + by, Home: 0, End: last }[event.key];
    if (go !== undefined) {
      this.charts.point(Number(this.#rows[Math.min(last, Math.max(0, go))][0]), this);
      this.point(this.charts.pointed);
    } else if (event.key === '+' || event.key === '-') {
      const [from, to] = this.#graph.xAxisRange();
      const middle = this.#hovered ?? (from + to) / 2;
      const width = (to - from) * (event.key === '+' ? 0.5 : 2);
      const [first, end] = this.#extremes();
      this.#zoomed(Math.max(first, middle - width / 2), Math.min(end, middle + width / 2));
    } else {
      return;
    }
    event.preventDefault();
  }
}

export function swatch(index) {
  const mark = make('i', { class: `swatch curve-${index % kCurves}` });
  return mark;
}

function extent(series, value) {
  const finite = (values) => values.filter((y) => y !== null);
  const low = finite(series.low);
  const high = finite(series.high);
  if (low.length === 0) return 'no finite value';
  return `lowest ${value(low.reduce((a, b) => Math.min(a, b)))}, highest ${value(high.reduce((a, b) => Math.max(a, b)))}, ${count(series.total)} values`;
}

const xOf = (series, i) => (view.axis === 'step' ? series.step[i] : new Date(series.at_ms[i]));

// Rows of [x, [low, mean, high], [smoothed × 3]]: an exponential mean whose weights add up to one from the first value on.
function rowsWithBars(series) {
  let sum = 0;
  let weight = 0;
  const keep = view.smoothing;
  return series.step.map((_, i) => {
    const y = series.value[i];
    if (y !== null) {
      sum = keep * sum + (1 - keep) * y;
      weight = keep * weight + (1 - keep);
    }
    const smooth = y === null || weight === 0 ? null : sum / weight;
    return [xOf(series, i), [series.low[i], y, series.high[i]], [smooth, smooth, smooth]];
  });
}

// Rows of [x, value of each series or null].
function rowsOfMany(all) {
  if (all.length === 1) return all[0].step.map((_, i) => [xOf(all[0], i), all[0].value[i] ?? NaN]);
  const rows = new Map();
  all.forEach((series, column) => {
    series.step.forEach((_, i) => {
      const x = xOf(series, i);
      const row = rows.get(Number(x)) ?? [x, ...all.map(() => null)];
      row[column + 1] = series.value[i] ?? NaN;
      rows.set(Number(x), row);
    });
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

// As dygraphs wants it: NaN where there is a gap; a logarithm has no place for what is not above zero.
function present(row, logscale) {
  const fit = (y) => (y === null || (logscale && y <= 0) ? NaN : y);
  return row.map((column, i) => (i > 0 && Array.isArray(column) ? column.map(fit) : column));
}
