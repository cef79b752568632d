#!/usr/bin/env python3
"""Answers what the page asks (docs/design/0024-watching.md), for jobs that never ran.

Each job lies below a prefix, /NAME/: the page and its API. `replay.py --port 8080` serves all of them until it is
interrupted; the one called "running" goes on meanwhile.
"""
import argparse
import http.server
import json
import math
import os
import random
import sys
import threading
import time
import urllib.parse

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
PAGE = os.path.join(ROOT, 'chief', 'watch', 'page')
PACKAGED = {
    'dygraph.min.js': '/usr/share/javascript/dygraphs/dygraph.min.js',
    'dygraph.min.css': '/usr/share/javascript/dygraphs/dygraph.min.css',
    'licenses.txt': '/usr/share/doc/libjs-dygraphs/copyright',
}
TYPES = {'html': 'text/html; charset=utf-8', 'css': 'text/css; charset=utf-8', 'js': 'text/javascript; charset=utf-8',
         'svg': 'image/svg+xml', 'txt': 'text/plain; charset=utf-8'}
# As strict as can be: the page must live under it, and so under whatever a server sends.
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"


def now_ms():
    return int(1000 * time.time())


class Job:
    """What one job answers. Everything may be changed while it is served."""

    def __init__(self, name, steps=0, workers=0, seed=1):
        self.random = random.Random(seed)
        self.began = now_ms() - 60000 - 100 * steps
        self.series = {}   # name → ([step], [at_ms], [value])
        self.entries = []
        self.lines = []
        self.samples = []
        self.gone = False  # the server hangs up without an answer
        self.status = 200
        self.job = {
            'live': True, 'job': name, 'directory': f'runs/{name}', 'term': 1, 'lineage': '9f31', 'phase': 'RUNNING',
            'step': steps, 'end_step': 2 * steps, 'published_step': steps // 1000 * 1000, 'samples_per_second': 12000.5,
            'eta_seconds': 0.1 * steps, 'global_batch': 128, 'epoch_samples': 60000, 'exit_code': 0,
            'goodput': {'stepping': 0.088 * steps, 'forming': 0.4, 'waiting': 0.009 * steps, 'stalled': 0.5, 'no_chief': 2.0, 'finishing': 0.3},
            'totals': {'generations': 1, 'joins': workers, 'preemptions': 0, 'losses': 0, 'crashes': 0, 'digest_mismatches': 0,
                       'checkpoints': steps // 1000, 'saves_failed': 0, 'saves_skipped': 0, 'chief_starts': 1, 'failures': 0,
                       'failures_allowed': 5},
            'workers': [self.worker(i) for i in range(workers)], 'hosts': [], 'drained': [], 'warnings': [],
            'checkpoints': [],
        }

    def at(self, step):
        return self.began + 100 * step

    def worker(self, i):
        slow = i % 37 == 5
        compute = (0.93 if slow else 0.72) + 0.05 * self.random.random()
        return {'name': f'worker-{i + 1}', 'host': f'node-{i // 8 + 1:02}', 'device': 'cuda:%d' % (i % 8), 'state': 'member', 'rank': i,
                'step': 0, 'connected': True, 'steps': 4000, 'samples_per_second': 3000 + 10 * self.random.random(),
                'step_ms': 10 + 0.4 * self.random.random() + (2 if slow else 0), 'compute_share': compute,
                'all_reduce_share': 0.98 - compute, 'data_share': 0.01, 'straggler': slow, 'slowdown': 1.31 if slow else 1 + 0.02 * self.random.random(),
                'joins': 1, 'preemptions': 0, 'losses': 0, 'crashes': 0}

    def tell(self, name, step, value):
        steps, times, values = self.series.setdefault(name, ([], [], []))
        steps.append(step)
        times.append(self.at(step))
        values.append(value)

    def loss(self, step):
        return 0.22 + 2.1 * math.exp(-step / 700) + 0.08 * self.random.gauss(0, 1) * math.exp(-step / 4000) + 0.02

    def learn(self, step, loss=None):
        """One more step."""
        value = self.loss(step) if loss is None else loss
        self.tell('loss', step, value)
        self.tell('learning_rate', step, 0.1 * (min(1, step / 500) if step < 500 else 0.5 * (1 + math.cos(math.pi * min(1, step / 9000)))))
        if step % 20 == 0:
            self.tell('gradient_norm', step, abs(1.2 + 0.3 * self.random.gauss(0, 1)) * (1 + 3 * math.exp(-step / 300)))
        if step % 50 == 0:
            self.tell('samples_per_second', step, 12000 + 250 * self.random.gauss(0, 1))
            self.tell('cluster/workers', step, len([w for w in self.job['workers'] if w.get('state') == 'member']))
            for worker in [one for one in self.job['workers'][:64] if 'step_ms' in one]:
                self.tell(f'worker/{worker["name"]}/step_ms', step, worker['step_ms'] + 0.3 * self.random.gauss(0, 1))
        self.job.update(step=step, loss=value)
        for worker in self.job['workers']:
            if worker.get('state') == 'member':
                worker['step'] = step

    def entry(self, step, kind, **fields):
        self.entries.append({'at_ms': self.at(step), 'kind': kind, 'step': step, **fields})

    def save(self, step, accuracy=None, **fields):
        path = f'{self.job["directory"]}/checkpoints/step-{step:012}'
        checkpoint = {'step': step, 'path': path, 'at_ms': self.at(step), 'bytes': 45678901, 'best': False, 'pinned': False, **fields}
        self.entry(step, 'saved', text=path)
        if accuracy is not None:
            checkpoint['evaluation'] = {'accuracy': accuracy}
            self.tell('evaluation/accuracy', step, accuracy)
            self.tell('evaluation/loss', step, 2 * (1 - accuracy))
            self.entry(step, 'evaluated', text=f'accuracy {accuracy}')
            self.job['evaluation'] = {'step': step, 'values': {'loss': 2 * (1 - accuracy), 'accuracy': accuracy}, 'metric': 'accuracy',
                                      'best_step': step, 'best_value': accuracy}
        self.job['checkpoints'].append(checkpoint)

    def log(self, step, level, text, worker=''):
        self.lines.append({'at_ms': self.at(step), 'level': level, 'part': 'worker' if worker else 'chief', 'worker': worker, 'text': text})

    # ---- answers -----------------------------------------------------------------------------------------------------
    def answer(self, path, query):
        if path == 'job':
            return {'now_ms': now_ms(), **self.job}
        if path == 'series':
            return {'series': [{'name': name, 'points': len(curve[0])} for name, curve in sorted(self.series.items())]}
        if path.startswith('series/') and path[7:] in self.series:
            return self.curve(path[7:], query)
        if path == 'timeline':
            return {'entries': self.entries[-20000:], 'left_out': max(0, len(self.entries) - 20000)}
        if path == 'logs':
            levels = {'debug': 0, 'info': 1, 'warn': 2, 'error': 3}
            least = levels[query.get('level', 'info')]
            lines = [line for line in self.lines if levels.get(line['level'], 3) >= least]
            return {'lines': lines[-int(query.get('lines', 500)):]}
        if path == 'samples':
            return {'samples': self.samples}
        return None

    def curve(self, name, query):
        first, last = int(query.get('from', 0)), int(query.get('to', 1 << 62))
        rows = [row for row in zip(*self.series[name]) if first <= row[0] <= last]
        points, total = int(query.get('points', 2000)), len(rows)
        answer = {'name': name, 'total': total}
        if total <= points:
            answer.update(step=[r[0] for r in rows], at_ms=[r[1] for r in rows], value=[finite(r[2]) for r in rows])
            return answer
        stretches = [rows[i * total // points:(i + 1) * total // points] for i in range(points)]
        for field in ('step', 'at_ms', 'value', 'low', 'high'):
            answer[field] = []
        for stretch in stretches:
            values = [r[2] for r in stretch]
            answer['step'].append(stretch[-1][0])
            answer['at_ms'].append(stretch[-1][1])
            answer['value'].append(finite(sum(values) / len(values)))
            answer['low'].append(finite(min(values)))
            answer['high'].append(finite(max(values)))
        return answer


def finite(value):
    return value if math.isfinite(value) else None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, jobs, port=0):
        super().__init__(('127.0.0.1', port), Handler)
        self.jobs = jobs
        self.requests = []
        self.address = f'http://127.0.0.1:{self.server_address[1]}'

    def handle_error(self, *request):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a tab was closed
            super().handle_error(*request)

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        self.server.requests.append(self.path)
        _, name, path = (address.path.split('/', 2) + ['', ''])[:3]
        job = self.server.jobs.get(name)
        if job is None:
            listing = ''.join(f'<p><a href="/{one}/">{one}</a>' for one in self.server.jobs)
            self.say(200 if address.path == '/' else 404, 'text/html', listing.encode())
        elif job.gone:
            self.close_connection = True
        elif path.startswith('api/'):
            answer = job.answer(urllib.parse.unquote(path[4:]), dict(urllib.parse.parse_qsl(address.query)))
            status = job.status if job.status != 200 else 200 if answer is not None else 404
            self.say(status, 'application/json', json.dumps(answer).encode())
        else:
            self.file(path or 'index.html')

    def file(self, path):
        place = PACKAGED.get(path) or os.path.join(PAGE, os.path.basename(path))
        if not os.path.isfile(place):
            return self.say(404, 'text/plain', b'')
        with open(place, 'rb') as content:
            self.say(200, TYPES.get(path.rsplit('.', 1)[-1], 'application/octet-stream'), content.read())

    def say(self, status, kind, body):
        self.send_response(status)
        for name, value in {'Content-Type': kind, 'Content-Length': len(body), 'Content-Security-Policy': POLICY,
                            'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-cache'}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    import jobs
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--port', type=int, default=8080)
    server = Server(jobs.all_jobs(), parser.parse_args().port)
    server.start()
    print(f'{server.address}/', flush=True)
    running = server.jobs['running']
    while True:
        time.sleep(0.1)
        running.learn(running.job['step'] + 1)


if __name__ == '__main__':
    main()
