"""What the measurements of other programs' recovery share: the model, the log of steps, the rounds and the figures.

Each worker appends `STEP SECONDS MEMBERS` to a file of its own, DIRECTORY/steps.PID, after each step. A round kills one
of the workers, by SIGKILL, and ends when all that should step have made some steps more. Prints one JSON object in the
form of recovery_bench.
"""

import collections.abc
import dataclasses
import json
import math
import os
import pathlib
import statistics
import time

WORKERS = 3
SETTLE_STEPS = 20
LIMIT_S = 60.0  # without a step after a kill: the run has died; on a busy machine LIMIT_STARTS times a start
LIMIT_STARTS = 4
START_LIMIT_S = 300.0  # importing torch three times on a small machine


@dataclasses.dataclass
class Step:
    number: int
    at: float
    members: int


Lives = dict[int, list[Step]]  # by process


def make_model():
    """LeNet's size: about 62,000 parameters."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(784, 78), torch.nn.ReLU(), torch.nn.Linear(78, 10))


def make_batch():
    import torch

    return torch.randn(21, 784), torch.randint(0, 10, (21,))


class StepLog:
    """Of one worker: sleeps until a step has taken its time, then writes it down."""

    def __init__(self, directory: pathlib.Path, step_ms: float):
        self._step_s = step_ms / 1e3
        self._file = open(directory / f"steps.{os.getpid()}", "w", buffering=1, encoding="ascii")
        self._begin = time.time()

    def done(self, number: int, members: int) -> None:
        time.sleep(max(0.0, self._step_s - (time.time() - self._begin)))
        self._begin = time.time()
        self._file.write(f"{number} {self._begin:.6f} {members}\n")


def limit_after(start_s: float) -> float:
    """How long to wait after a kill where a start of everything took so long."""
    return max(LIMIT_S, LIMIT_STARTS * start_s)


def read_lives(directory: pathlib.Path) -> Lives:
    lives = {}
    for path in directory.glob("steps.*"):
        text = path.read_text(encoding="ascii")
        lines = [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]
        lives[int(path.suffix[1:])] = [Step(int(number), float(at), int(members)) for number, at, members in lines]
    return lives


def wait_for_steps(directory: pathlib.Path, since: float, workers: int, limit: float,
                   check: collections.abc.Callable[[], None] = lambda: None, members: int = WORKERS) -> Lives:
    """The steps since then, with so many members, of those that made more than SETTLE_STEPS. TimeoutError: so many
    workers do not, within `limit` seconds."""
    deadline = time.time() + limit
    while time.time() < deadline:
        check()
        lives = {pid: [step for step in steps if step.at > since and step.members == members]
                 for pid, steps in read_lives(directory).items()}
        lives = {pid: steps for pid, steps in lives.items() if len(steps) > SETTLE_STEPS and is_alive(pid)}
        if len(lives) >= workers:
            return lives
        time.sleep(0.05)
    raise TimeoutError(f"no {workers} workers step within {limit:.0f} s")


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


class Figures:
    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {"total_ms": [], "stood_ms": [], "steps_lost": []}
        self._steps_ms: list[float] = []
        self.died = 0

    def add(self, before: Lives, after: Lives, fault: float) -> None:
        """`before`: all steps up to the fault and of those that went on; `after`: those that step after it."""
        first = max((steps[0] for steps in after.values()), key=lambda step: step.at)
        last = max((step for steps in before.values() for step in steps if step.at <= fault), key=lambda step: step.at)
        newest = max(step.number for steps in before.values() for step in steps if step.at <= fault)
        self._values["total_ms"].append((first.at - fault) * 1e3)
        self._values["stood_ms"].append((first.at - last.at) * 1e3)
        self._values["steps_lost"].append(max(0, newest + 1 - first.number))
        for steps in before.values():
            self._steps_ms += [(b.at - a.at) * 1e3 for a, b in zip(steps, steps[1:]) if b.number == a.number + 1]

    def print(self, bench: str) -> None:
        count = len(self._values["total_ms"])
        figures: dict[str, object] = {"bench": bench, "fault": "kill_worker", "kills": count, "died": self.died}
        figures["step_ms"] = round(statistics.median(self._steps_ms), 2) if self._steps_ms else 0
        for key, values in self._values.items():
            name, unit = (key[:-3], "_ms") if key.endswith("_ms") else (key, "")
            if count:
                figures[f"{name}_p50{unit}"] = round(percentile(values, 0.5), 1)
                figures[f"{name}_p95{unit}"] = round(percentile(values, 0.95), 1)
        print(json.dumps(figures))
