// Asking again and again: one request of a kind at a time, more slowly while none is answered, never while the tab is
// hidden.

const kLongestPause = 15000;
const kTimeLimit = 30000;

export class HttpError extends Error {
  constructor(status, why) {
    super(`the answer was ${status}`);
    this.status = status;
    this.why = why;
  }
}

export async function ask(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(kTimeLimit), cache: 'no-cache' });
  if (!answer.ok) throw new HttpError(answer.status, await answer.json().then((body) => body.error, () => undefined));
  return answer.json();
}

// Calls `ask()` and waits `every()` milliseconds, for ever. `failed(error, pause)` when it throws; the pause doubles then.
export class Poll {
  constructor({ ask, every, failed = () => {} }) {
    this.ask = ask;
    this.every = every;
    this.failed = failed;
    this.failures = 0;
    this.again = false;
    document.addEventListener('visibilitychange', () => document.hidden || this.now());
    this.#run();
  }

  // Asks without waiting any longer.
  now() {
    this.again = true;
    this.wake?.();
  }

  async #run() {
    for (;;) {
      while (document.hidden) await new Promise((wake) => (this.wake = wake));
      this.again = false;
      let pause;
      const began = performance.now();
      try {
        await this.ask();
        this.failures = 0;
        // A server that is slow to answer is asked less often.
        pause = Math.max(this.every(), 3 * (performance.now() - began));
      } catch (error) {
        pause = Math.min(kLongestPause, 1000 * 2 ** this.failures++);
        this.failed(error, pause);
      }
      if (!this.again) await this.#sleep(pause);
    }
  }

  async #sleep(pause) {
    await new Promise((wake) => {
      this.wake = wake;
      this.timer = setTimeout(wake, pause);
    });
    clearTimeout(this.timer);
  }
}
