// The logs: oldest first, the cause of a failure below them all.
import { byId, keyed, make, setText, show } from './dom.js';
import { clock } from './format.js';

export class Logs {
  #lines = [];
  level = 'info';

  constructor() {
    byId('logs-level').addEventListener('change', (event) => {
      this.level = event.target.value;
      this.poll?.now();
    });
    byId('logs-filter').addEventListener('input', () => this.show());
    const box = byId('logs-lines');
    // Who scrolls up wants to read.
    box.addEventListener('scroll', () => (byId('logs-follow').checked = box.scrollTop + box.clientHeight >= box.scrollHeight - 8));
    byId('logs-follow').addEventListener('change', () => this.#follow());
  }

  set(lines) {
    this.#lines = lines;
    this.show();
  }

  setJob(job) {
    const cause = job.phase === 'FAILED' || job.exit_code > 0 ? job.cause : '';
    show(byId('logs-cause'), Boolean(cause));
    setText(byId('logs-cause'), cause ? `Cause: ${cause}` : '');
  }

  show() {
    const words = byId('logs-filter').value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = this.#lines.filter((line) => {
      const all = `${line.worker ?? ''} ${line.part ?? ''} ${line.level ?? ''} ${line.text}`.toLowerCase();
      return words.every((word) => all.includes(word));
    });
    const box = byId('logs-lines');
    const seen = new Map();
    const keyOf = (line) => {
      const key = `${line.at_ms} ${line.level} ${line.worker ?? ''} ${line.text}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
      return `${seen.get(key)} ${key}`;
    };
    keyed(box, shown, keyOf, logLine, () => {});
    let empty = box.querySelector('.empty');
    if (shown.length > 0) empty?.remove();
    else if (empty === null) box.append((empty = make('p', { class: 'empty' })));
    if (shown.length === 0) setText(empty, this.#lines.length === 0 ? 'No lines yet.' : 'No line matches the filter.');
    this.#follow();
  }

  #follow() {
    const box = byId('logs-lines');
    if (byId('logs-follow').checked) box.scrollTop = box.scrollHeight;
  }
}

const kLevels = ['debug', 'info', 'warn', 'error'];

function logLine(line) {
  const level = kLevels.includes(line.level) ? line.level : 'info';
  return make('div', { class: `log-line ${level}` }, make('time', {}, clock(line.at_ms)), make('b', {}, line.level ?? ''),
    make('span', { class: 'from' }, line.worker || line.part || ''), make('span', { class: 'text' }, line.text));
}
