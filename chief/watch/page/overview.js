// The top of the page: how far the job is, what it does, its figures, and what is wrong with it.
import { byId, keyed, make, setText, show } from './dom.js';
import { ago, clock, count, duration, number, percent } from './format.js';

const kPhases = {
  ADOPTING: ['busy', '◌', 'the chief takes the job over'],
  WAITING: ['busy', '◌', 'waits for workers'],
  FORMING: ['busy', '◌', 'a generation of workers forms'],
  RUNNING: ['good', '●', 'trains'],
  BREAKING: ['busy', '◌', 'a generation broke up; the next one follows'],
  FINISHING: ['busy', '◌', 'saves and ends'],
  DONE: ['done', '✓', 'is done'],
  STOPPED: ['idle', '■', 'was stopped'],
  ENDED: ['idle', '■', 'has ended'],
  FAILED: ['bad', '✕', 'failed'],
  NOT_RUNNING: ['warn', '○', 'no chief is at work'],
};

const kExitCodes = {
  64: ['the command line is wrong', 'Correct the command.'],
  65: ['the data or the model are wrong', 'Correct them, then start the same command again: it goes on from the newest checkpoint.'],
  69: ['the chief could not be reached', 'See to the network and to the chief, then start the same command again.'],
  70: ['a defect, or the failure budget is spent', 'Read the logs below for the first failure; start the same command again when its cause is gone.'],
  74: ['the storage failed', 'See to the disk or the bucket, then start the same command again.'],
  75: ['it was preempted', 'Start the same command again: it goes on.'],
  76: ['a newer chief has the job', 'Look at the page of the newer chief.'],
  77: ['the token does not fit', 'Give the worker the token of this job (lockstep token).'],
  78: ['the job file, a port or the directory is wrong, or the machine cannot run the job', 'Run lockstep check on the job file.'],
};

// [key of `goodput`, class, name]
const kParts = [
  ['stepping', 'agreed steps'],
  ['waiting', 'waiting for workers'],
  ['forming', 'forming generations'],
  ['stalled', 'stalled'],
  ['finishing', 'saving at the end'],
  ['no_chief', 'no chief'],
];

const kTotals = [
  ['generations', 'generations'],
  ['joins', 'joins'],
  ['losses', 'workers lost'],
  ['preemptions', 'left on notice'],
  ['crashes', 'crashes'],
  ['digest_mismatches', 'replicas that differed'],
  ['chief_starts', 'chief starts'],
  ['checkpoints', 'checkpoints'],
  ['saves_failed', 'saves failed'],
  ['saves_skipped', 'saves skipped'],
];
const kTroubles = new Set(['crashes', 'digest_mismatches', 'saves_failed']);

export const hasEnded = (job) => !job.live && ['DONE', 'STOPPED', 'FAILED', 'ENDED', 'NOT_RUNNING'].includes(job.phase);

export function showOverview(job) {
  const [tone, sign, words] = kPhases[job.phase] ?? ['idle', '', ''];
  setText(byId('job-name'), job.job ?? 'A job without a name');
  setText(byId('phase'), `${sign} ${job.phase ?? 'UNKNOWN'}`.trim());
  byId('phase').className = `pill ${tone}`;
  byId('phase').title = words;
  setText(byId('directory'), job.directory ?? '');
  byId('directory').title = job.directory ?? '';
  showProgress(job, words);
  showTiles(job);
  showGoodput(job.goodput);
  showTotals(job.totals ?? {});
  showEnding(job);
  const warnings = [...(job.storage_trouble ? [`Storage: ${job.storage_trouble}`] : []), ...(job.warnings ?? [])];
  show(byId('warnings'), warnings.length > 0);
  keyed(byId('warnings'), warnings.map((text, i) => ({ text, key: `${i} ${text}` })), (one) => one.key, (one) => make('li', {}, one.text), () => {});
}

function showProgress(job, words) {
  const share = job.end_step > 0 && job.step !== undefined ? Math.min(1, job.step / job.end_step) : undefined;
  setText(byId('step'), count(job.step));
  setText(byId('end-step'), job.end_step !== undefined ? `of ${count(job.end_step)}` : job.step === undefined ? '' : 'until the clock ends the job');
  const bar = byId('bar');
  show(bar, share !== undefined);
  if (share !== undefined) {
    bar.firstElementChild.style.width = `${100 * share}%`;
    bar.setAttribute('aria-valuenow', Math.floor(100 * share));
    bar.setAttribute('aria-valuetext', `${percent(share, 1)}, step ${count(job.step)} of ${count(job.end_step)}`);
  }
  const left = job.live && job.eta_seconds > 0 ? `${duration(job.eta_seconds)} left, until ${clock(job.now_ms + 1000 * job.eta_seconds, job.now_ms)}` : '';
  setText(byId('eta'), [share === undefined ? '' : percent(share, 1), left].filter(Boolean).join(' · '));
  const facts = [words];
  if (job.waiting_for) facts.push(job.waiting_for);
  if (job.generation && job.generation !== '0.0') facts.push(`generation ${job.generation}`);
  if (job.term !== undefined) facts.push(`term ${count(job.term)}`);
  setText(byId('doing'), facts.filter(Boolean).join(' · '));
  document.title = `${share === undefined ? `step ${count(job.step)}` : percent(share)} ${job.job ?? ''} ${job.phase === 'RUNNING' ? '' : `(${job.phase})`} – Lockstep`.replace(/ +/g, ' ');
}

function showTiles(job) {
  const workers = job.workers ?? [];
  const members = workers.filter((worker) => worker.state === 'member').length;
  const others = workers.filter((worker) => worker.connected && worker.state !== 'member').length;
  const gone = workers.length - members - others;
  const evaluation = job.evaluation;
  const metric = evaluation?.metric || Object.keys(evaluation?.values ?? {})[0];
  const tiles = [
    ['loss', 'Loss', number(job.loss), job.loss === null ? 'not finite: training has diverged' : job.loss === undefined ? '' : 'of the newest step', job.loss === null ? 'bad' : ''],
    ['speed', 'Samples per second', number(job.samples_per_second), job.global_batch === undefined ? '' : `${count(job.global_batch)} samples a step`],
    ['workers', 'Workers', count(members), [others > 0 ? `${count(others)} more connected` : '', gone > 0 ? `${count(gone)} gone` : ''].filter(Boolean).join(', ') || 'take part'],
    ['evaluation', metric === undefined ? 'Evaluation' : `Evaluation: ${metric}`, metric === undefined ? '–' : number(evaluation.values?.[metric]),
      metric === undefined ? 'none yet' : evaluation.best_step > 0 ? `best ${number(evaluation.best_value)} at step ${count(evaluation.best_step)}` : `at step ${count(evaluation.step)}`],
    ['saved', 'Saved step', job.published_step > 0 ? count(job.published_step) : '–', job.published_step > 0 ? unsaved(job) : 'no checkpoint yet'],
    ['epoch', 'Epoch', epoch(job), job.epoch_samples === undefined ? '' : `${count(job.epoch_samples)} samples each`],
  ];
  keyed(byId('tiles'), tiles, (tile) => tile[0], ([id]) => make('div', { class: 'panel tile', id: `tile-${id}` }, make('dt'), make('dd', { class: 'value' }), make('dd', { class: 'dim' })), (element, [, title, value, note, tone]) => {
    const [dt, dd, small] = element.children;
    setText(dt, title);
    setText(dd, value);
    setText(small, note);
    dd.className = `value ${tone ?? ''}`.trim();
  });
}

function unsaved(job) {
  const steps = job.step - job.published_step;
  const newest = (job.checkpoints ?? []).find((one) => one.step === job.published_step);
  const when = newest?.at_ms > 0 ? ago(newest.at_ms, job.now_ms) : '';
  return [steps > 0 ? `${count(steps)} steps since` : 'nothing is unsaved', when].filter(Boolean).join(', ');
}

function epoch(job) {
  if (!(job.epoch_samples > 0) || job.global_batch === undefined || job.step === undefined) return '–';
  return ((job.step * job.global_batch) / job.epoch_samples).toFixed(2);
}

function showGoodput(goodput) {
  const seconds = kParts.map(([key]) => Math.max(0, goodput?.[key] ?? 0));
  const sum = seconds.reduce((a, b) => a + b, 0);
  setText(byId('goodput-share'), sum > 0 ? `${percent(seconds[0] / sum, 1)} of ${duration(sum)} in agreed steps` : 'nothing is measured yet');
  const parts = kParts.map(([key, name], i) => ({ key, name, seconds: seconds[i], share: sum > 0 ? seconds[i] / sum : 0 }));
  keyed(byId('goodput-bar'), parts, (part) => part.key, (part) => make('i', { class: `part ${part.key}` }), (element, part) => {
    element.style.width = `${100 * part.share}%`;
    element.title = `${part.name}: ${duration(part.seconds)}`;
  });
  byId('goodput-bar').setAttribute('aria-label', sum > 0 ? parts.map((part) => `${part.name} ${percent(part.share, 1)}`).join(', ') : 'nothing is measured yet');
  show(byId('goodput-bar'), sum > 0);
  show(byId('goodput-parts'), sum > 0);
  keyed(byId('goodput-parts'), parts, (part) => part.key, (part) => make('li', {}, make('i', { class: `swatch ${part.key}` }), make('span', {}, part.name), make('b'), make('span', { class: 'dim share' })), (element, part) => {
    setText(element.children[2], duration(part.seconds));
    setText(element.children[3], sum > 0 ? percent(part.share, 1) : '');
  });
}

function showTotals(totals) {
  const shown = kTotals.filter(([key]) => totals[key] !== undefined).map(([key, name]) => ({ key, name, text: count(totals[key]), bad: kTroubles.has(key) && totals[key] > 0 }));
  if (totals.failures !== undefined) {
    shown.push({ key: 'failures', name: 'failures of the budget', bad: totals.failures > 0,
      text: totals.failures_allowed === undefined ? count(totals.failures) : `${count(totals.failures)} of ${count(totals.failures_allowed)}` });
  }
  show(byId('totals-panel'), shown.length > 0);
  keyed(byId('totals'), shown, (one) => one.key, (one) => make('div', {}, make('dt', {}, one.name), make('dd')), (element, one) => {
    setText(element.lastElementChild, one.text);
    element.lastElementChild.className = one.bad ? 'warn' : '';
  });
}

// Why the job is not at work any more, and what to do.
function showEnding(job) {
  const notice = byId('ending');
  const [what, remedy] = kExitCodes[job.exit_code] ?? [];
  const lines = {
    DONE: () => ['done', `The job is done at step ${count(job.step)}.`],
    STOPPED: () => ['', `The job was stopped at step ${count(job.step)}.`, 'Start the same command again: it goes on.'],
    FAILED: () => ['bad', 'The job failed.', remedy ?? 'Read the logs below for the first failure.'],
    NOT_RUNNING: () => ['warn', `No chief is at work: it was killed, or its machine is gone. ${job.published_step > 0 ? `Step ${count(job.published_step)} is saved.` : ''}`.trim(), 'Start the same command again: it goes on from what is saved.'],
  }[job.phase]?.();
  const ended = lines !== undefined && !(job.live && job.phase === 'NOT_RUNNING');
  const key = ended ? JSON.stringify([lines, job.cause, job.exit_code]) : '';
  show(notice, ended);
  if (notice.key === key) return;
  notice.key = key;
  notice.replaceChildren();
  if (!ended) return;
  const [tone, head, advice] = lines;
  notice.className = `notice ${tone}`;
  notice.append(make('h2', {}, head));
  if (job.cause) notice.append(make('p', { class: 'reason' }, job.cause));
  if (job.exit_code > 0) notice.append(make('p', {}, `Exit code ${job.exit_code}${what ? `: ${what}.` : '.'}`));
  if (advice) notice.append(make('p', {}, make('b', {}, 'What to do: '), advice, ' See ', make('cite', {}, 'docs/operating.md'), '.'));
}
