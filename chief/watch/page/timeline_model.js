// What the timeline draws, worked out from its entries: who was connected and who took part when, and what happened.
import { byName } from './format.js';

// Of each kind of entry: what it is called, where it belongs, and how its mark looks. `row`: of the worker, the chief, the
// saves; none: it has no mark.
export const kKinds = {
  chief_started: { label: 'chief started', group: 'chief', row: 'chief', shape: 'up', colour: 'text' },
  chief_ended: { label: 'chief ended', group: 'chief', row: 'chief', shape: 'square', colour: 'text' },
  phase: { label: 'phase', group: 'chief' },
  generation: { label: 'generation', group: 'members' },
  joined: { label: 'joined', group: 'members', row: 'worker', shape: 'right', colour: 'curve-2' },
  left: { label: 'left on notice', group: 'members', row: 'worker', shape: 'left', colour: 'curve-1' },
  lost: { label: 'lost', group: 'faults', row: 'worker', shape: 'cross', colour: 'bad' },
  crashed: { label: 'crashed', group: 'faults', row: 'worker', shape: 'star', colour: 'bad' },
  refused: { label: 'refused', group: 'faults', row: 'worker', shape: 'ring', colour: 'bad' },
  differed: { label: 'differed', group: 'faults', row: 'worker', shape: 'diamond', colour: 'curve-3' },
  repaired: { label: 'repaired', group: 'faults', row: 'saves', shape: 'diamond', colour: 'curve-3' },
  save_began: { label: 'save began', group: 'saves' },
  saved: { label: 'saved', group: 'saves', row: 'saves', shape: 'down', colour: 'curve-0' },
  save_failed: { label: 'save failed', group: 'faults', row: 'saves', shape: 'cross', colour: 'bad' },
  evaluated: { label: 'evaluated', group: 'saves' },
  warning: { label: 'warning', group: 'faults', row: 'chief', shape: 'ring', colour: 'warn' },
  error: { label: 'error', group: 'faults', row: 'chief', shape: 'cross', colour: 'bad' },
};

// {from, to, workers: [{name, connected: [[from, to]], member: [[from, to]], marks: [entry]}], chief: {bars, marks},
// generations: [{from, to, name}], saves: [entry]}. `now`: when the job still runs, the present; else undefined.
export function buildTimeline(entries, now) {
  const rows = new Map();
  const row = (name) => {
    if (!rows.has(name)) rows.set(name, { name, connected: [], member: [], marks: [] });
    return rows.get(name);
  };
  const open = (bars, at) => bars.at(-1)?.[1] === null || bars.push([at, null]);
  const close = (bars, at) => bars.at(-1)?.[1] === null && (bars.at(-1)[1] = Math.max(at, bars.at(-1)[0]));
  const chief = { bars: [], marks: [] };
  const generations = [];
  const saves = [];
  let chiefBegan = -Infinity;
  let before = entries[0]?.at_ms ?? 0;

  for (const entry of entries) {
    const { at_ms: at, kind } = entry;
    if (entry.worker && kKinds[kind]?.row === 'worker') row(entry.worker).marks.push(entry);
    if (kKinds[kind]?.row === 'chief') chief.marks.push(entry);
    if (kKinds[kind]?.row === 'saves') saves.push(entry);
    if (kind === 'joined') {
      open(row(entry.worker).connected, at);
      row(entry.worker).heard = at;
    } else if (kind === 'lost' || kind === 'left' || kind === 'crashed') {
      close(row(entry.worker).connected, at);
      close(row(entry.worker).member, at);
    } else if (kind === 'generation') {
      if (generations.length > 0) generations.at(-1).to = at;
      generations.push({ from: at, to: null, name: entry.generation ?? '' });
      const members = new Set(entry.workers ?? []);
      for (const name of members) {
        open(row(name).connected, at);
        open(row(name).member, at);
      }
      for (const other of rows.values()) {
        if (members.has(other.name)) continue;
        close(other.member, at);
        // It has not come to this chief: it was gone before it.
        if ((other.heard ?? -Infinity) < chiefBegan) close(other.connected, chiefBegan);
      }
    } else if (kind === 'chief_started') {
      close(chief.bars, before);  // one that was killed says nothing
      open(chief.bars, at);
      chiefBegan = at;
    } else if (kind === 'chief_ended') {
      close(chief.bars, at);
      for (const other of rows.values()) {
        close(other.connected, at);
        close(other.member, at);
      }
      if (generations.length > 0) generations.at(-1).to ??= at;
    }
    before = at;
  }

  const to = Math.max(now ?? 0, before);
  close(chief.bars, to);
  if (generations.length > 0) generations.at(-1).to ??= to;
  for (const one of rows.values()) {
    close(one.connected, to);
    close(one.member, to);
  }
  const workers = [...rows.values()].sort((a, b) => byName(a.name, b.name));
  return { from: entries[0]?.at_ms ?? to, to, workers, chief, generations, saves };
}
