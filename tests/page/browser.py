"""Drives Chromium without a window by the DevTools protocol, over a pipe: --remote-debugging-pipe."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

KEYS = {'Enter': 13, 'Tab': 9, 'Escape': 27, 'ArrowLeft': 37, 'ArrowRight': 39, 'Home': 36, 'End': 35, ' ': 32}


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        to_browser, self.out = os.pipe()
        self.incoming, from_browser = os.pipe()
        command = ['chromium', '--headless', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
                   '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
                   f'--user-data-dir={self.folder}', '--hide-scrollbars']

        # It reads from descriptor 3 and writes to 4. The shell moves them there.
        script = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self.process = subprocess.Popen(['bash', '-c', script, 'bash', *command], pass_fds=(to_browser, from_browser),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number = 0
        self.buffer = b''
        self.events = []

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, limit):
        """The next message, or None after `limit` seconds."""
        while b'\0' not in self.buffer:
            ready, _, _ = select.select([self.incoming], [], [], limit)
            if not ready:
                return None
            more = os.read(self.incoming, 1 << 20)
            if not more:
                raise RuntimeError('the browser has ended')
            self.buffer += more
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.read(60)
            if answer is None:
                raise RuntimeError(f'no answer to {method}')
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]["message"]}')
                return answer['result']
            self.events.append(answer)


class Page:
    """A tab of its own, with storage of its own. `troubles` are errors of scripts, of the console, and of the policy."""

    def __init__(self, browser, width=1280, height=900, mobile=False, dark=False):
        self.browser = browser
        self.context = browser.call('Target.createBrowserContext')['browserContextId']
        self.target = browser.call('Target.createTarget', url='about:blank', browserContextId=self.context)['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=self.target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        self.resize(width, height, mobile)
        if mobile:
            self.call('Emulation.setTouchEmulationEnabled', enabled=True)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def resize(self, width, height, mobile=False):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def open(self, address):
        self.call('Page.navigate', url=address)
        return self

    def close(self):
        self.browser.call('Target.disposeBrowserContext', browserContextId=self.context)

    def value(self, expression):
        answer = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(f'{expression}: {answer["exceptionDetails"]["exception"].get("description", answer["exceptionDetails"]["text"])}')
        return answer['result'].get('value')

    def text(self, selector):
        """What can be read there: nothing where it is hidden."""
        return self.value(f'(() => {{ const one = document.querySelector({json.dumps(selector)}); return one?.checkVisibility() ? one.innerText : null; }})()')

    def until(self, expression, limit=40):
        """Waits until the expression is true in the page."""
        end = time.monotonic() + limit
        while True:
            found = self.value(expression)
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f'waited {limit} s for: {expression}')
            time.sleep(0.05)

    def press(self, key, modifiers=0):
        text = {'Enter': '\r', ' ': ' '}.get(key, key if len(key) == 1 else '')
        event = {'key': key, 'windowsVirtualKeyCode': KEYS.get(key, ord(key[0].upper())), 'modifiers': modifiers}
        self.call('Input.dispatchKeyEvent', type='keyDown' if text else 'rawKeyDown', text=text, **event)
        self.call('Input.dispatchKeyEvent', type='keyUp', **event)

    def type(self, text):
        self.call('Input.insertText', text=text)

    def drag(self, x, y, to_x, to_y):
        button = {'button': 'left', 'buttons': 1, 'clickCount': 1}
        self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)
        self.call('Input.dispatchMouseEvent', type='mousePressed', x=x, y=y, **button)
        for share in (0.3, 0.7, 1):
            self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x + share * (to_x - x), y=y + share * (to_y - y), button='left', buttons=1)
        self.call('Input.dispatchMouseEvent', type='mouseReleased', x=to_x, y=to_y, **button)

    def picture(self, path, whole=True):
        """The page as a PNG: all of it, or what the window shows."""
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=whole)['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))

    def mine(self, method):
        self.value('0')  # what has happened so far has come
        return [event['params'] for event in self.browser.events if event.get('sessionId') == self.session and event.get('method') == method]

    def requests(self):
        return [event['request']['url'] for event in self.mine('Network.requestWillBeSent')]

    def troubles(self):
        found = [event['exceptionDetails'].get('exception', {}).get('description', event['exceptionDetails']['text']) for event in self.mine('Runtime.exceptionThrown')]
        found += [str([one.get('description', one.get('value')) for one in event['args']]) for event in self.mine('Runtime.consoleAPICalled') if event['type'] in ('error', 'warning', 'assert')]
        found += [f'{event["entry"]["source"]}: {event["entry"]["text"]} {event["entry"].get("url", "")}' for event in self.mine('Log.entryAdded') if event['entry']['level'] in ('error', 'warning')]
        return found
