"""The jobs that the page is looked at with: an ordinary one, a large one, and the odd ones."""
from replay import Job

# Would run if it were ever taken for HTML; "pwned" is looked for afterwards.
HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>&amp;"\'</td>'


def running():
    job = Job('fashion-mnist', steps=0, workers=4)
    job.began = job.began - 100 * 4500
    members = ['worker-1', 'worker-2', 'worker-3', 'worker-4']
    job.entry(0, 'chief_started', text='0.1.0, from nothing')
    for name in members:
        job.entry(1, 'joined', worker=name)
    job.entry(2, 'phase', text='RUNNING')
    job.entry(2, 'generation', generation='1.1', workers=members)
    for step in range(1, 4403):
        job.learn(step)
        if step % 1000 == 0:
            job.save(step, accuracy=round(0.93 - 0.5 * 0.5 ** (step / 700), 4), pinned=step == 2000)
    for number, (step, name, kind) in enumerate([(900, 'worker-2', 'lost'), (1700, 'worker-3', 'left'), (2450, 'worker-1', 'crashed'), (3300, 'worker-2', 'lost')]):
        job.entry(step, kind, worker=name, text={'lost': 'its connection was reset', 'left': 'preempted', 'crashed': 'signal 11'}[kind])
        job.entry(step + 2, 'generation', generation=f'1.{2 * number + 2}', workers=[one for one in members if one != name])
        job.entry(step + 160, 'joined', worker=name)
        job.entry(step + 165, 'generation', generation=f'1.{2 * number + 3}', workers=members)
    job.entry(3900, 'chief_started', text='0.1.0, from step 3000')
    job.entry(3950, 'generation', generation='2.1', workers=members)
    job.entries.sort(key=lambda entry: entry['at_ms'])
    job.job['checkpoints'][-1]['best'] = True
    job.job.update(end_step=9000, published_step=4000, eta_seconds=461, term=2, generation='2.1')
    job.job['goodput'] = {'stepping': 388.2, 'forming': 6.1, 'waiting': 31.0, 'stalled': 3.5, 'no_chief': 9.0, 'finishing': 2.4}
    job.job['totals'].update(generations=10, joins=8, losses=2, preemptions=1, crashes=1, chief_starts=2, checkpoints=4, failures=1)
    for worker in job.job['workers']:
        worker['joins'] = 2
    job.job['workers'][1]['losses'] = 2
    job.job['workers'][0]['crashes'] = 1
    job.job['workers'].append({'name': 'worker-5', 'host': 'node-02', 'device': 'cpu', 'state': 'spare', 'rank': -1, 'connected': True, 'joins': 1, 'preemptions': 0, 'losses': 0, 'crashes': 0})
    job.job['workers'].append({'name': 'worker-6', 'host': 'node-03', 'device': 'cpu', 'connected': False, 'steps': 100, 'joins': 1, 'preemptions': 1, 'losses': 0, 'crashes': 0})
    for step in range(0, 4400, 40):
        job.log(step, 'debug' if step % 200 else 'info', f'step {step} is agreed')
    for entry in job.entries:
        if entry['kind'] in ('lost', 'crashed', 'joined'):
            job.log((entry['at_ms'] - job.began) / 100, 'warn' if entry['kind'] != 'joined' else 'info', f'{entry["kind"]}: {entry.get("text", "on node-01")}', entry['worker'])
    job.lines.sort(key=lambda line: line['at_ms'])
    job.samples = [{'step': step, 'text': f'ROMEO: step {step}, and the light through yonder window breaks.\n\nJULIET: O.'} for step in (4000, 3000, 2000)]
    return job


def big():
    job = Job('llama-pretrain', steps=0, workers=200, seed=2)
    job.began -= 100 * 10100
    names = [worker['name'] for worker in job.job['workers']]
    job.entry(0, 'chief_started', text='0.1.0')
    for name in names:
        job.entry(1, 'joined', worker=name)
    job.entry(2, 'generation', generation='1.1', workers=names)
    for step in range(1, 10001):
        job.learn(step)
    for i in range(500):
        step, name = 50 + 19 * i, names[(i * 37) % 200]
        job.entry(step, ['lost', 'left', 'crashed'][i % 3], worker=name)
        job.entry(step + 1, 'generation', generation=f'1.{2 * i + 2}', workers=[one for one in names if one != name])
        job.entry(step + 12, 'joined', worker=name)
        job.entry(step + 13, 'generation', generation=f'1.{2 * i + 3}', workers=names)
    for step in range(1000, 10001, 1000):
        job.save(step, accuracy=0.5 + step / 30000)
    job.entries.sort(key=lambda entry: entry['at_ms'])
    job.job.update(end_step=40000, published_step=10000, eta_seconds=3000, generation='1.1001', directory='s3://training/llama/run-7')
    job.job['totals'].update(losses=167, preemptions=167, crashes=166, joins=700, generations=1001)
    job.job['hosts'] = [{'host': 'node-07', 'failures': 3, 'excluded': True, 'cause': 'worker-51: signal 11'}]
    job.job['drained'] = ['worker-9']
    job.job['warnings'] = ['8 of 200 workers compute more slowly than the others, who wait for them']
    return job


def start():
    job = Job('new', steps=0)
    job.job.update(phase='WAITING', waiting_for='0/2 workers joined', end_step=9000, published_step=0)
    del job.job['goodput'], job.job['samples_per_second'], job.job['eta_seconds']
    return job


def bare():
    """Only what must be there: `lockstep view` of a directory of which little is known."""
    job = Job('bare', steps=0)
    job.job = {'live': False, 'phase': 'NOT_RUNNING', 'directory': 'gs://bucket/very/deep/prefix/of/a/job'}
    return job


def not_finite():
    job = Job('diverging', steps=0, workers=2)
    for step in range(1, 600):
        job.learn(step, loss=float('nan') if step > 500 else None)
    job.job.update(loss=None, end_step=9000)
    return job


def ended(name, phase, exit_code, cause):
    job = Job(name, steps=0, workers=2)
    for step in range(1, 1500):
        job.learn(step)
    job.save(1000, accuracy=0.8)
    job.entry(1499, 'chief_ended', text=cause, exit_code=exit_code)
    for worker in job.job['workers']:
        worker.update(connected=False)
        del worker['state']
    job.log(1400, 'info', 'step 1400 is agreed')
    job.log(1498, 'error', cause)
    job.job.update(live=False, phase=phase, exit_code=exit_code, cause=cause, end_step=1499 if phase == 'DONE' else 9000, published_step=1000)
    return job


def hostile():
    job = Job(HOSTILE, steps=0, workers=2)
    job.job['workers'][0].update(name=HOSTILE, host=HOSTILE, device=HOSTILE, state=HOSTILE)
    for step in range(1, 100):
        job.learn(step)
    job.tell(f'evaluation/{HOSTILE}', 50, 0.5)
    job.tell(HOSTILE, 50, 0.5)
    job.entry(1, 'chief_started', text=HOSTILE)
    job.entry(1, 'joined', worker=HOSTILE)
    job.entry(2, 'generation', generation=HOSTILE, workers=[HOSTILE])
    job.entry(20, 'lost', worker=HOSTILE, text=HOSTILE)
    job.entry(21, HOSTILE, worker=HOSTILE, text=HOSTILE)
    job.entry(30, 'warning', text=HOSTILE)
    job.save(50, accuracy=0.5)
    job.job['checkpoints'][0].update(path=HOSTILE, evaluation={HOSTILE: 0.5})
    job.job['evaluation'] = {'step': 50, 'values': {HOSTILE: 0.5}, 'metric': HOSTILE, 'best_step': 50, 'best_value': 0.5}
    job.job.update(directory=HOSTILE, phase='FAILED', live=False, generation=HOSTILE, waiting_for=HOSTILE, storage_trouble=HOSTILE, cause=HOSTILE, exit_code=65,
                   warnings=[HOSTILE], drained=[HOSTILE], hosts=[{'host': HOSTILE, 'failures': 1, 'excluded': True, 'cause': HOSTILE}], end_step=900)
    job.log(1, 'error', HOSTILE, HOSTILE)
    job.lines.append({'at_ms': job.at(2), 'level': HOSTILE, 'part': HOSTILE, 'worker': '', 'text': HOSTILE})
    job.samples = [{'step': 50, 'text': HOSTILE}]
    return job


def all_jobs():
    return {
        'running': running(), 'big': big(), 'start': start(), 'bare': bare(), 'nan': not_finite(), 'hostile': hostile(),
        'done': ended('short', 'DONE', 0, 'the job is done'),
        'stopped': ended('short', 'STOPPED', 75, 'stopped by lockstep stop'),
        'failed': ended('short', 'FAILED', 65, 'data/train.npz: label 12 at row 4711; the model has the classes 0 to 9. Correct the labels, or set `model.classes: 13`.'),
    }
