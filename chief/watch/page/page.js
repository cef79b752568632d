// Asks the server for the job again and again, and shows what it answers.
import { Charts } from './charts.js';
import { byId, setText, show } from './dom.js';
import { ago, clock, duration } from './format.js';
import { Logs } from './logs.js';
import { hasEnded, showOverview } from './overview.js';
import { ask, Poll } from './poll.js';
import { showCheckpoints, showSamples } from './records.js';
import { Timeline } from './timeline.js';
import { view } from './view.js';
import { Workers } from './workers.js';

// How often each is asked for, in milliseconds: while the job goes on, and after it ended.
const kOften = { job: [1000, 15000], series: [3000, 30000], timeline: [4000, 30000], logs: [3000, 30000], samples: [10000, 60000] };

const charts = new Charts();
const workers = new Workers(charts);
const timeline = new Timeline();
const logs = new Logs();
let job = null;
let answered = null;      // when the last answer came, by this browser's clock
let silentSince = null;
let refusal = null;       // {status, why}, when the server answers without the job
let nextTry = 0;

const every = (kind) => () => kOften[kind][job !== null && hasEnded(job) ? 1 : 0];
const now = () => (job !== null && job.live ? job.now_ms : undefined);

function poll(kind, path, shown) {
  const once = async () => {
    const answer = await ask(path());
    try {
      shown(answer);
    } catch (error) {
      console.error(error);  // a mistake of this page: the server did answer
    }
  };
  return new Poll({ ask: once, every: every(kind), failed: (error, pause) => failed(kind, error, pause) });
}

function failed(kind, error, pause) {
  if (kind !== 'job') return;
  silentSince ??= answered ?? Date.now();
  refusal = error.status ? error : null;
  nextTry = Date.now() + pause;
  showConnection();
}

const polls = {};
polls.job = poll('job', () => 'api/job', (answer) => {
  const began = job === null || hasEnded(job);
  const back = silentSince !== null;
  job = answer;
  answered = Date.now();
  silentSince = null;
  refusal = null;
  showOverview(job);
  workers.set(job);
  showCheckpoints(job);
  logs.setJob(job);
  charts.setJob(job);
  if (job.live) timeline.advance(job.now_ms);
  showConnection();
  if (back || (began && !hasEnded(job))) for (const kind of ['series', 'timeline', 'logs', 'samples']) polls[kind]?.now();
});
polls.series = new Poll({ ask: () => charts.refresh(), every: every('series') });
polls.timeline = poll('timeline', () => 'api/timeline', (answer) => {
  charts.setEntries(answer.entries);
  timeline.set(answer, now());
});
polls.logs = poll('logs', () => `api/logs?lines=500&level=${logs.level}`, (answer) => logs.set(answer.lines));
polls.samples = poll('samples', () => 'api/samples', (answer) => showSamples(answer.samples));
charts.poll = polls.series;
charts.shown = () => workers.show();
logs.poll = polls.logs;

// ---- whether what is shown is new -------------------------------------------------------------------------------------
function showConnection() {
  const silent = silentSince !== null;
  show(byId('offline'), silent);
  document.body.classList.toggle('stale', silent);
  if (silent) setText(byId('offline'), silence());
  setText(byId('freshness'), silent ? '' : job === null ? 'asking…' : hasEnded(job) ? `as of ${clock(job.now_ms)}` : `updated ${ago(answered, Date.now())}`);
}

function silence() {
  if (refusal?.status === 401 || refusal?.status === 403) return 'The server does not let this page in: its token is missing or has changed. Open the link with ?token=… again.';
  const wait = Math.max(0, Math.ceil((nextTry - Date.now()) / 1000));
  const said = refusal === null ? '' : ` (the answer is ${refusal.status}${refusal.why ? `: ${refusal.why}` : ''})`;
  return `The chief does not answer since ${clock(silentSince)}${said}, for ${duration((Date.now() - silentSince) / 1000)}. ` +
    `What is shown is as of then. Trying again ${wait > 0 ? `in ${wait} s` : 'now'}. If the job has ended, lockstep view DIR shows it.`;
}

setInterval(() => document.hidden || showConnection(), 1000);

// ---- keys -------------------------------------------------------------------------------------------------------------
const sections = ['overview', 'charts', 'workers', 'timeline', 'checkpoints', 'samples', 'logs'];
const help = byId('help');

function goTo(section) {
  const element = byId(section);
  if (element.hidden) return;
  element.scrollIntoView();
  element.focus({ preventScroll: true });
}

const keys = {
  '?': () => help.showModal(),
  '/': () => {
    goTo('workers');
    byId('workers-filter').focus();
  },
  a: () => view.set({ axis: view.axis === 'step' ? 'time' : 'step' }),
  l: () => view.set({ logScale: !view.logScale }),
  0: () => view.showAll(),
  t: () => window.switchTheme(),
};
sections.forEach((section, i) => (keys[i + 1] = () => goTo(section)));

document.addEventListener('keydown', (event) => {
  const { target } = event;
  if (event.key === 'Escape' && target.matches('input[type=search]')) {
    target.value = '';
    target.dispatchEvent(new Event('input'));
    target.blur();
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || help.open || target.matches('input:not([type=checkbox]):not([type=range]), select, textarea')) return;
  const action = keys[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
});
byId('theme').addEventListener('click', () => window.switchTheme());
byId('help-open').addEventListener('click', () => help.showModal());

charts.redraw();
showConnection();
