#!/usr/bin/env python3
"""Looks at the page in Chromium, and at what its document holds. See page.sh."""
import argparse
import json
import sys
import time
import traceback

import jobs
import replay
from browser import Browser, Page

CHECKS = []


def check(what):
    def add(function):
        CHECKS.append((what, function))
        return function
    return add


class World:
    """A browser, and the server of a check's own jobs."""

    def __init__(self, browser, pictures):
        self.browser = browser
        self.pictures = pictures
        self.server = None
        self.pages = []

    def open(self, name, job, **window):
        if self.server is None:
            self.server = replay.Server({}).start()
        self.server.jobs[name] = job
        page = Page(self.browser, **window).open(f'{self.server.address}/{name}/')
        self.pages.append(page)
        page.until('document.readyState === "complete" && document.querySelector("#phase")?.textContent.length > 1')
        return page

    def finish(self, failed=False):
        for i, page in enumerate(self.pages):
            if self.pictures and failed:
                page.picture(f'{self.pictures}/failed-{len(self.pages)}-{i}.png')
            page.close()
        self.pages = []
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.server = None


def equal(found, expected, what=''):
    assert found == expected, f'{what}: expected {expected!r}, found {found!r}'


def holds(text, *parts):
    for part in parts:
        assert part in (text or ''), f'{part!r} is not in {text!r}'


def settled(page):
    """All kinds were answered once, and the charts are drawn."""
    page.until('["api/job", "api/series", "api/timeline", "api/logs", "api/samples"].every((one) => '
               'performance.getEntriesByType("resource").some((entry) => entry.name.includes(one) && entry.responseEnd > 0))')
    page.value('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')


def asked(world, name, what='api/job'):
    return len([one for one in world.server.requests if one.startswith(f'/{name}/{what}')])


def until(condition, limit=40):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f'waited {limit} s'
        time.sleep(0.05)


def charted(page):
    page.until('document.querySelectorAll("#chart-loss canvas").length > 0')
    settled(page)


def column(page, index):
    return page.value(f'[...document.querySelectorAll("#workers-table tbody tr")].map((tr) => tr.cells[{index}].textContent)')


def sideways(page):
    return page.value('document.documentElement.scrollWidth - document.documentElement.clientWidth')


# ---- what it shows -----------------------------------------------------------------------------------------------------
@check('a running job: progress, figures, goodput, totals')
def _(world):
    page = world.open('job', jobs.running())
    charted(page)
    equal(page.text('#job-name'), 'fashion-mnist')
    holds(page.text('#phase'), 'RUNNING')
    equal(page.text('#step'), '4,402')
    equal(page.text('#end-step'), 'of 9,000')
    holds(page.text('#eta'), '48.9 %', '7 min 41 s left')
    equal(page.value('document.querySelector("#bar").getAttribute("aria-valuenow")'), '48')
    holds(page.text('#tile-epoch'), '9.39')
    holds(page.text('#tile-evaluation'), 'accuracy', 'best', 'at step 4,000')
    holds(page.text('#tile-saved'), '4,000', '402 steps since')
    holds(page.text('#goodput-share'), '88.2 % of 7 min 20 s')
    holds(page.value('document.querySelector("#goodput-bar").getAttribute("aria-label")'), 'agreed steps 88.2 %', 'no chief 2.0 %')
    holds(page.text('#totals'), 'workers lost\n2', '1 of 5')
    holds(page.value('document.title'), '49 % fashion-mnist')
    assert page.value('document.querySelector("#offline").hidden && document.querySelector("#ending").hidden && document.querySelector("#warnings").hidden')


@check('every chart says its last value in words')
def _(world):
    job = jobs.running()
    page = world.open('job', job)
    charted(page)
    page.until('document.querySelectorAll("#chart-step_ms .legend li").length === 4 && document.getElementById("chart-evaluation/loss")?.hidden === false')
    said = page.value('Object.fromEntries([...document.querySelectorAll(".chart:not([hidden])")].map((one) => [one.id, one.querySelector(".plot").getAttribute("aria-label")]))')
    holds(said['chart-loss'], f'Loss: {job.series["loss"][2][-1]:.4g} at step 4,402', 'lowest', '4,402 values')
    for name in ('samples_per_second', 'members', 'learning_rate', 'gradient_norm', 'evaluation/accuracy', 'evaluation/loss', 'step_ms'):
        assert f'chart-{name}' in said, f'there is no chart {name}: {sorted(said)}'
    holds(said['chart-step_ms'], 'worker-1', 'worker-4')
    holds(page.text('#chart-loss .readout'), 'at step 4,402')


@check('checkpoints: newest first, marked, and the path is copied')
def _(world):
    page = world.open('job', jobs.running())
    settled(page)
    rows = page.value('[...document.querySelectorAll("#checkpoints-table tbody tr")].map((tr) => tr.innerText)')
    equal(len(rows), 4)
    holds(rows[0], '4,000', '44 MiB', 'accuracy 0.9', 'best', 'runs/fashion-mnist/checkpoints/step-000000004000', 'min')
    holds(rows[2], 'pinned')
    world.browser.call('Browser.grantPermissions', browserContextId=page.context, permissions=['clipboardReadWrite', 'clipboardSanitizedWrite'])
    page.value('document.querySelector("#checkpoints-table .copy").click()')
    page.until('document.querySelector("#checkpoints-table .copy").textContent === "Copied"')
    page.call('Page.bringToFront')
    equal(page.value('navigator.clipboard.readText()'), 'runs/fashion-mnist/checkpoints/step-000000004000')


@check('samples and logs: the newest sample first, the newest line last, levels and a filter')
def _(world):
    page = world.open('job', jobs.running())
    settled(page)
    holds(page.text('#samples-list details summary'), 'Step 4,000')
    page.until('document.querySelectorAll("#logs-lines .log-line").length > 20')
    holds(page.value('[...document.querySelectorAll("#logs-lines .log-line")].at(-1).textContent'), 'step 4200 is agreed')
    assert page.value('(() => { const box = document.querySelector("#logs-lines"); return box.scrollTop + box.clientHeight >= box.scrollHeight - 8; })()'), 'the newest line is not in sight'
    page.value('(() => { const one = document.querySelector("#logs-level"); one.value = "warn"; one.dispatchEvent(new Event("change")); })()')
    page.until('[...document.querySelectorAll("#logs-lines .log-line")].length === 3')
    page.value('(() => { const one = document.querySelector("#logs-filter"); one.value = "signal"; one.dispatchEvent(new Event("input")); })()')
    holds(page.text('#logs-lines'), 'crashed: signal 11')
    equal(page.value('document.querySelectorAll("#logs-lines .log-line").length'), 1)


@check('the timeline: who took part when, which chief was there, and what happened')
def _(world):
    page = world.open('job', jobs.running())
    page.until('document.querySelectorAll("#events-table tbody tr").length > 20')
    model = page.value('''import("./timeline_model.js").then(async ({ buildTimeline }) => {
        const { entries } = await (await fetch("api/timeline")).json();
        const began = entries[0].at_ms - 0;
        const model = buildTimeline(entries, began + 450000);
        const seconds = (bars) => bars.map(([from, to]) => [Math.round((from - began) / 1000), Math.round((to - began) / 1000)]);
        return { chief: seconds(model.chief.bars), generations: model.generations.length, saves: model.saves.length,
                 workers: model.workers.map((one) => [one.name, seconds(one.connected), one.marks.map((mark) => mark.kind)]) };
    })''')
    equal(model['workers'][1], ['worker-2', [[0, 90], [106, 330], [346, 450]], ['joined', 'lost', 'joined', 'lost', 'joined']])
    equal(model['workers'][2], ['worker-3', [[0, 170], [186, 450]], ['joined', 'left', 'joined']])
    equal([len(model['workers']), model['generations'], model['saves']], [4, 10, 4])
    equal(model['chief'], [[0, 347], [390, 450]], 'the first chief was killed without a word after the last entry')
    page.value('(() => { const one = document.querySelector("#events-kind"); one.value = "faults"; one.dispatchEvent(new Event("change")); })()')
    kinds = page.value('[...document.querySelectorAll("#events-table tbody tr")].map((tr) => tr.cells[1].textContent)')
    equal(kinds, ['lost', 'crashed', 'lost'])
    holds(page.text('#events-table tbody'), 'signal 11', 'its connection was reset')


# ---- how it goes on ----------------------------------------------------------------------------------------------------
@check('steps, workers, events, lines, samples and checkpoints appear without a reload')
def _(world):
    job = jobs.running()
    page = world.open('job', job)
    charted(page)
    page.value('window.same = true')
    for step in range(4403, 4500):
        job.learn(step)
    job.save(4500, accuracy=0.95)
    job.job['workers'].append({**job.job['workers'][0], 'name': 'worker-new'})
    job.entry(4490, 'joined', worker='worker-new')
    job.log(4499, 'error', 'a line of its own')
    job.samples.insert(0, {'step': 4490, 'text': 'a new sample'})
    page.until('document.querySelector("#step").textContent === "4,499"')
    page.until('document.querySelector("#workers-table tbody").textContent.includes("worker-new")')
    page.until('document.querySelector("#workers-table tbody tr").cells[3].textContent === "4,499"')
    page.until('document.querySelector("#tile-epoch").textContent.includes("9.60")')
    page.until('document.querySelector("#checkpoints-table tbody tr").textContent.includes("4,500")')
    page.until('document.querySelector("#chart-loss .plot").getAttribute("aria-label").includes("at step 4,499")')
    page.until('document.querySelector("#events-table").textContent.includes("worker-new")')
    page.until('document.querySelector("#logs-lines").textContent.includes("a line of its own")')
    page.until('document.querySelector("#samples-list details").textContent.includes("a new sample")')
    assert page.value('window.same'), 'the page was loaded again'
    equal(page.troubles(), [])


@check('a curve is asked for in full once, then only what is new; after a new term in full again')
def _(world):
    job = jobs.running()
    page = world.open('job', job)
    charted(page)
    job.learn(4403)
    page.until('document.querySelector("#chart-loss .plot").getAttribute("aria-label").includes("at step 4,403")')
    requests = [one for one in world.server.requests if '/api/series/loss?' in one]
    holds(requests[0], 'points=')
    assert 'from=' not in requests[0], requests
    assert any('from=4403' in one for one in requests[1:]), requests
    job.series['loss'][2][-1] = 7.25  # as many as before
    job.job.update(term=3)
    page.until('document.querySelector("#chart-loss .plot").getAttribute("aria-label").includes("7.25 at step 4,403")')
    for curve in job.series['loss']:
        del curve[4000:]
    page.until('document.querySelector("#chart-loss .plot").getAttribute("aria-label").includes("at step 4,000")')


@check('one request of a kind at a time, and all below the prefix of the page')
def _(world):
    job = jobs.running()
    page = world.open('job', job)
    settled(page)
    page.until('performance.getEntriesByType("resource").filter((entry) => entry.name.endsWith("api/job")).length >= 4')
    overlaps = page.value('''(() => {
        const times = performance.getEntriesByType("resource").filter((entry) => entry.name.endsWith("api/job")).sort((a, b) => a.startTime - b.startTime);
        return times.filter((entry, i) => i > 0 && entry.startTime < times[i - 1].responseEnd).length;
    })()''')
    equal(overlaps, 0, 'requests that began before the one before was answered')
    outside = [one for one in page.requests() if not one.startswith(f'{world.server.address}/job/')]
    equal(outside, [], 'requests outside')


@check('the chief is gone: the page says since when, asks more seldom, and goes on by itself when it is back')
def _(world):
    job = jobs.running()
    page = world.open('job', job)
    settled(page)
    job.gone = True
    page.until('!document.querySelector("#offline").hidden')
    holds(page.text('#offline'), 'The chief does not answer since', 'lockstep view')
    holds(page.text('#step'), '4,402')
    page.until('/again in [2-9]/.test(document.querySelector("#offline").textContent)')
    job.learn(4403)
    job.gone = False
    page.until('document.querySelector("#offline").hidden')
    page.until('document.querySelector("#step").textContent === "4,403"')


@check('a server that refuses the token is told from one that is gone')
def _(world):
    job = jobs.running()
    page = world.open('job', job)
    job.status = 401
    page.until('!document.querySelector("#offline").hidden')
    holds(page.text('#offline'), 'token')


@check('a hidden tab asks for nothing, and at once when it is seen again')
def _(world):
    job = jobs.running()
    page = world.open('job', job)
    settled(page)
    page.value('''Object.defineProperty(document, "hidden", { get: () => window.away === true, configurable: true });
                  window.away = true; document.dispatchEvent(new Event("visibilitychange"))''')
    world.open('other', jobs.start())
    until(lambda: asked(world, 'other') >= 3)  # what was under way has ended
    before, seen = asked(world, 'job', ''), asked(world, 'other')
    until(lambda: asked(world, 'other') >= seen + 3)
    equal(asked(world, 'job', ''), before, 'requests of a hidden tab')
    job.learn(4403)
    page.value('window.away = false; document.dispatchEvent(new Event("visibilitychange"))')
    page.until('document.querySelector("#step").textContent === "4,403"')


# ---- odd jobs ----------------------------------------------------------------------------------------------------------
@check('a job at step 0 without workers')
def _(world):
    page = world.open('job', jobs.start())
    settled(page)
    holds(page.text('#phase'), 'WAITING')
    holds(page.text('#doing'), '0/2 workers joined')
    equal(page.text('#step'), '0')
    holds(page.text('#workers-empty'), 'No worker has come yet')
    holds(page.text('#checkpoints-empty'), 'Nothing is saved yet')
    holds(page.text('#goodput-share'), 'nothing is measured yet')
    holds(page.text('#chart-loss .readout'), 'no values yet')
    assert page.value('document.querySelector("#samples").hidden'), 'samples are shown'
    equal(page.troubles(), [])


@check('a directory of which nothing is known, in a bucket')
def _(world):
    page = world.open('job', jobs.bare())
    settled(page)
    holds(page.text('#ending'), 'No chief is at work', 'Start the same command again')
    holds(page.text('#directory'), 'gs://bucket/very/deep/prefix/of/a/job')
    assert 'NaN' not in page.text('body') and 'undefined' not in page.text('body'), page.text('body')
    equal(page.troubles(), [])


@check('a loss that is NaN is said, in the figure and in the chart')
def _(world):
    page = world.open('job', jobs.not_finite())
    charted(page)
    holds(page.text('#tile-loss'), 'NaN', 'diverged')
    holds(page.text('#chart-loss .note-line'), '99 points, first at step 501')
    equal(page.troubles(), [])


@check('a failed job: the cause, the exit code and what to do, above; the cause last in the logs')
def _(world):
    page = world.open('job', jobs.all_jobs()['failed'])
    settled(page)
    holds(page.text('#ending'), 'The job failed', 'label 12 at row 4711', 'Exit code 65', 'What to do', 'docs/operating.md')
    assert page.value('document.querySelector("#ending").getBoundingClientRect().top < document.querySelector("#overview").getBoundingClientRect().top')
    holds(page.text('#logs-cause'), 'Cause: data/train.npz')
    assert page.value('document.querySelector("#logs-lines").compareDocumentPosition(document.querySelector("#logs-cause")) & Node.DOCUMENT_POSITION_FOLLOWING')
    before = asked(world, 'job')
    world.open('other', jobs.start())
    until(lambda: asked(world, 'other') >= 4)
    assert asked(world, 'job') - before <= 1, 'an ended job is asked for as often as one that goes on'


@check('a finished and a stopped job say so, and say no failure')
def _(world):
    page = world.open('done', jobs.all_jobs()['done'])
    settled(page)
    holds(page.text('#ending'), 'The job is done at step 1,499')
    assert page.value('document.querySelector("#logs-cause").hidden')
    stopped = world.open('stopped', jobs.all_jobs()['stopped'])
    settled(stopped)
    holds(stopped.text('#ending'), 'The job was stopped at step 1,499', 'it goes on')
    assert 'failed' not in stopped.text('#ending')


@check('whatever a job calls itself stays text')
def _(world):
    page = world.open('job', jobs.hostile())
    charted(page)
    page.until('document.querySelectorAll("#events-table tbody tr").length > 4')
    page.press('a')
    page.value('document.querySelector("#chart-loss .plot").focus()')
    page.press('ArrowLeft')
    select = 'document.querySelector("#add-series")'
    page.until(f'{select}.options.length > 1')
    page.value(f'(() => {{ {select}.value = {json.dumps(jobs.HOSTILE)}; {select}.dispatchEvent(new Event("change")); }})()')
    page.until('document.querySelectorAll(".chart").length > 7')
    box = page.value('(() => { document.querySelector("#timeline").scrollIntoView(); const box = document.querySelector("#timeline-panel canvas:nth-of-type(2)").getBoundingClientRect(); return [box.x, box.y]; })()')
    page.call('Input.dispatchMouseEvent', type='mouseMoved', x=box[0] + 20, y=box[1] + 12)
    page.until('!document.querySelector(".tip").hidden')
    equal(page.value('window.pwned'), None, 'a script of the job ran')
    equal(page.value('document.querySelectorAll("main img, main script, main td td").length'), 0, 'elements that a job made')
    for place in ('#job-name', '#directory', '#ending', '#warnings', '#tiles', '#workers-table', '#hosts', '#events-table', '#checkpoints-table',
                  '#samples-list', '#logs-lines', '#logs-cause', '#chart-grid', '.tip'):
        holds(page.value(f'document.querySelector({json.dumps(place)}).textContent'), '<img src=x onerror=')
    equal(page.troubles(), [])


# ---- large -------------------------------------------------------------------------------------------------------------
@check('10,000 points, 200 workers and 2,200 events: all are there, sort, filter and zoom')
def _(world):
    page = world.open('job', jobs.big())
    charted(page)
    page.until('document.querySelectorAll("#workers-table tbody tr").length === 200')
    holds(page.text('#workers-count'), '200 of 200 take part')
    holds(page.value('document.querySelector("#chart-loss .plot").getAttribute("aria-label")'), '10,000 values')
    page.until('document.querySelectorAll("#chart-step_ms .legend li").length === 6')
    holds(page.text('#events-count'), 'the newest 300 of 2,222')
    page.value('document.querySelector("#workers-table th[data-key=slowdown] button").click()')
    holds(column(page, 1)[0], 'straggler')
    page.value('(() => { const one = document.querySelector("#workers-filter"); one.value = "node-06 straggler"; one.dispatchEvent(new Event("input")); })()')
    equal(column(page, 0), ['worker-43'])
    holds(page.text('#workers-count'), '1 of 200 shown')
    assert page.value('document.querySelector("#timeline-panel canvas:nth-of-type(2)").clientHeight') > 200 * 12
    equal(page.troubles(), [])


@check('dragging across a chart shows that part in detail everywhere, and 0 shows all again')
def _(world):
    page = world.open('job', jobs.big())
    charted(page)
    page.until('document.querySelectorAll("#events-table tbody tr").length > 20')
    before = page.text('#timeline-span')
    box = page.value('(() => { document.querySelector("#charts").scrollIntoView(); const box = document.querySelector("#chart-loss .plot").getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()')
    page.drag(box[0] + 0.5 * box[2], box[1] + 60, box[0] + 0.6 * box[2], box[1] + 60)
    page.until('performance.getEntriesByType("resource").some((entry) => /series.loss.*to=/.test(entry.name))')
    request = [one for one in world.server.requests if '/api/series/loss?' in one and 'to=' in one][-1]
    first, last = (int(part.split('=')[1]) for part in request.split('&') if part[:3] in ('fro', 'to='))
    assert 4000 < first < last < 7000 and 700 < last - first < 1500, request
    page.until(f'document.querySelector("#timeline-span").textContent !== {json.dumps(before)}')
    equal(page.value('document.querySelector("#follow").value'), 'custom')
    page.press('0')
    page.until('document.querySelector("#follow").value === "0"')
    page.until(f'document.querySelector("#zoom-out").hidden')


# ---- hands and eyes ----------------------------------------------------------------------------------------------------
@check('workers are sorted by keyboard, and numbers in names count as numbers')
def _(world):
    job = jobs.running()
    job.job['workers'].append({**job.job['workers'][0], 'name': 'worker-10', 'step_ms': 99.5})
    page = world.open('job', job)
    settled(page)
    equal(column(page, 0), ['worker-1', 'worker-2', 'worker-3', 'worker-4', 'worker-5', 'worker-6', 'worker-10'])
    page.value('document.querySelector("#workers-table th[data-key=step_ms] button").focus()')
    page.press('Enter')
    equal(column(page, 0)[0], 'worker-10')
    equal(page.value('document.querySelector("th[data-key=step_ms]").getAttribute("aria-sort")'), 'descending')
    page.press('Enter')
    equal(column(page, 0)[-1], 'worker-10')
    equal(page.value('document.querySelector("th[data-key=step_ms]").getAttribute("aria-sort")'), 'ascending')
    equal(page.value('document.querySelector("th[data-key=name]").getAttribute("aria-sort")'), 'none')


@check('shortcuts: help, filter, axis, log scale, sections; none while one types')
def _(world):
    page = world.open('job', jobs.running())
    charted(page)
    page.press('?')
    assert page.value('document.querySelector("#help").open')
    page.press('Escape')
    page.until('!document.querySelector("#help").open')
    page.press('a')
    equal(page.value('document.querySelector("#axis").value'), 'time')
    page.press('l')
    assert page.value('document.querySelector("#log-scale").checked')
    page.press('/')
    equal(page.value('document.activeElement.id'), 'workers-filter')
    page.press('l')
    assert page.value('document.querySelector("#log-scale").checked'), 'a letter of the filter was taken for a shortcut'
    page.type('node-03')
    page.press('Escape')
    equal(page.value('document.querySelector("#workers-filter").value'), '')
    page.press('7')
    equal(page.value('document.activeElement.id'), 'logs')
    equal(page.troubles(), [])


@check('a chart is read by arrow keys, and all charts show the same step')
def _(world):
    page = world.open('job', jobs.running())
    charted(page)
    page.value('document.querySelector("#chart-learning_rate .plot").focus()')
    page.press('Home')
    holds(page.text('#chart-learning_rate .readout'), 'at step')
    first = page.text('#chart-learning_rate .readout')
    page.press('ArrowRight')
    assert page.text('#chart-learning_rate .readout') != first
    assert not page.text('#chart-loss .readout').endswith('4,402'), 'the other charts stay where they were'
    page.value('document.activeElement.blur()')
    holds(page.text('#chart-loss .readout'), '4,402')


@check('Tab reaches every control, and shows where it is')
def _(world):
    page = world.open('job', jobs.running())
    charted(page)
    page.value('document.body.focus()')
    reached = []
    for _ in range(150):
        page.press('Tab')
        found = page.value('(() => { const one = document.activeElement; return one === document.body ? null : [one.id || (one.closest("[id]")?.id ?? one.textContent), getComputedStyle(one).outlineStyle]; })()')
        if found is None or (reached and found == reached[0]):
            break
        reached.append(found)
    names = [name for name, _ in reached]
    for wanted in ('theme', 'help-open', 'axis', 'follow', 'smoothing', 'log-scale', 'chart-loss', 'add-series', 'workers-filter', 'workers-table',
                   'timeline-panel', 'events-kind', 'checkpoints-table', 'logs-level', 'logs-lines'):
        assert wanted in names, f'Tab does not reach {wanted}: {names}'
    unseen = [name for name, outline in reached if outline == 'none']
    equal(unseen, [], 'focus is not shown on')


@check('every control has a name, and every picture')
def _(world):
    page = world.open('job', jobs.running())
    charted(page)
    tree = page.call('Accessibility.getFullAXTree')['nodes']
    roles = {'button', 'link', 'combobox', 'checkbox', 'slider', 'searchbox', 'textbox', 'img', 'image', 'progressbar', 'figure', 'table', 'region', 'dialog'}
    nameless = [node['role']['value'] for node in tree if not node.get('ignored') and node.get('role', {}).get('value') in roles
                and node['role']['value'] != 'table' and not node.get('name', {}).get('value')]
    equal(nameless, [])
    equal(page.value('[...document.querySelectorAll("main [tabindex=\\"0\\"]")].filter((one) => !one.getAttribute("aria-label")).length'), 0, 'places that Tab reaches without a name')


@check('a phone: nothing has to be scrolled sideways, in any job')
def _(world):
    for name, job in jobs.all_jobs().items():
        page = world.open(name, job, width=360, height=740, mobile=True)
        settled(page)
        equal(sideways(page), 0, f'{name} is wider than the window by')
        if world.pictures:
            page.picture(f'{world.pictures}/phone-{name}.png')
        page.close()
        world.pages.remove(page)


@check('dark where the system is dark; the switch is kept')
def _(world):
    job = jobs.running()
    page = world.open('job', job, dark=True)
    bright = 'getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b) > 384'
    equal(page.value(bright), False)
    charted(page)
    if world.pictures:
        page.picture(f'{world.pictures}/dark.png')
    page.press('t')
    equal(page.value(bright), True)
    page.open(f'{world.server.address}/job/')
    page.until('document.readyState === "complete" && document.documentElement.dataset.theme')
    equal(page.value(bright), True, 'after loading again')
    other = world.open('light', jobs.start())
    equal(other.value(bright), True)


@check('letters are told from their ground: contrast of 4.5 in both themes')
def _(world):
    page = world.open('job', jobs.all_jobs()['failed'])
    settled(page)
    for theme in ('light', 'dark'):
        page.until(f'document.documentElement.dataset.theme === "{theme}" || (window.switchTheme(), false)')
        poor = page.value('''(() => {
            const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const ground = (one) => { for (; one; one = one.parentElement) { const back = getComputedStyle(one).backgroundColor; if (!/, 0\\)$|transparent/.test(back)) return back; } return "rgb(255, 255, 255)"; };
            const found = new Set();
            for (const one of document.querySelectorAll("body *")) {
                if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || one.checkVisibility?.() === false) continue;
                const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((x, y) => y - x);
                if ((a + 0.05) / (b + 0.05) < 4.5) found.add(`${one.tagName} ${one.className} ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
            }
            return [...found];
        })()''')
        equal(poor, [], theme)


@check('no errors, no breach of the policy, nothing from elsewhere, in any job')
def _(world):
    for name, job in jobs.all_jobs().items():
        page = world.open(name, job)
        settled(page)
        equal(page.troubles(), [], name)
        outside = [one for one in page.requests() if not one.startswith(f'{world.server.address}/{name}/')]
        equal(outside, [], name)
        if world.pictures:
            page.picture(f'{world.pictures}/{name}.png')
        page.close()
        world.pages.remove(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--only', default='', help='checks whose name holds this')
    parser.add_argument('--pictures', default='', help='a folder for pictures of the page')
    arguments = parser.parse_args()
    passed = failed = 0
    world = World(Browser(), arguments.pictures)
    try:
        for what, function in CHECKS:
            if arguments.only not in what:
                continue
            try:
                function(world)
                passed += 1
                print(f'ok      {what}', flush=True)
                world.finish()
            except Exception:
                failed += 1
                print(f'FAILED  {what}')
                print(''.join(f'        {line}\n' for line in traceback.format_exc().splitlines()[-6:]), flush=True)
                world.finish(failed=True)
    finally:
        world.browser.close()
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
