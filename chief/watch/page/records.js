// Checkpoints, and what a language model wrote.
import { byId, copyText, keyed, make, setText, show } from './dom.js';
import { ago, bytes, clock, count, number } from './format.js';

const kMarks = { damage: '✕ damaged', best: '★ best', pinned: '⚲ pinned' };

export function showCheckpoints(job) {
  const checkpoints = [...(job.checkpoints ?? [])].sort((a, b) => b.step - a.step);
  setText(byId('checkpoints-count'), checkpoints.length > 0 ? count(checkpoints.length) : '');
  show(byId('checkpoints-empty'), checkpoints.length === 0);
  show(byId('checkpoints-table'), checkpoints.length > 0);
  keyed(byId('checkpoints-table').tBodies[0], checkpoints, (one) => `${one.step} ${one.path}`, checkpointRow, (tr, one) => {
    const values = Object.entries(one.evaluation ?? {}).map(([name, value]) => `${name === 'value' ? job.evaluation?.metric ?? name : name} ${number(value)}`).join(', ');
    const when = one.at_ms > 0 ? ago(one.at_ms, job.now_ms) : '–';
    [count(one.step), when, bytes(one.bytes), values || '–'].forEach((text, i) => setText(tr.cells[i], text));
    tr.cells[1].title = one.at_ms > 0 ? clock(one.at_ms, 0) : '';
    const marks = Object.keys(kMarks).filter((mark) => one[mark]);
    keyed(tr.cells[4], marks, (mark) => mark, (mark) => make('span', { class: `badge ${mark}`, title: mark === 'damage' ? one.damage : undefined }, kMarks[mark]), () => {});
  });
}

function checkpointRow(one) {
  const copy = make('button', { type: 'button', class: 'quiet copy', 'aria-label': `Copy the path of step ${one.step}` }, 'Copy');
  copy.addEventListener('click', async () => {
    await copyText(one.path ?? '');
    setText(copy, 'Copied');
    setTimeout(() => setText(copy, 'Copy'), 1500);
  });
  return make('tr', {}, make('td', { class: 'number strong' }), make('td'), make('td', { class: 'number' }), make('td'), make('td'),
    make('td', {}, make('span', { class: 'path-cell' }, make('code', { class: 'path' }, one.path ?? '–'), copy)));
}

export function showSamples(samples) {
  show(byId('samples'), samples.length > 0);
  show(byId('samples-link'), samples.length > 0);
  keyed(byId('samples-list'), samples, (one) => `${one.step} ${one.text}`, (one) => {
    const box = make('details', { class: 'panel sample' }, make('summary', {}, `Step ${count(one.step)}`), make('pre', {}, one.text));
    box.open = byId('samples-list').childElementCount < 2;
    return box;
  }, () => {});
}
