"""How long torchrun needs to have a job of three workers step again after one is killed, at a given step time.

One elastic agent with three workers: the case in which torchrun has least to do, for no agents need to find each other
again. A worker trains a small model under DistributedDataParallel with Gloo, sleeps until a step has taken --step-ms,
and writes when each step was done; rank 0 saves the model after every step, and all load it at a restart. Counted is
the time from SIGKILL of one worker to the first step of the slowest of the three that the agent starts then.

Prints one JSON object in the form of recovery_bench. Needs torch; nothing else of Lockstep does.
"""

import argparse
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

WORKERS = 3
SETTLE_STEPS = 20
LIMIT_S = 180.0


def train(directory: pathlib.Path, step_ms: float) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(784, 78), torch.nn.ReLU(), torch.nn.Linear(78, 10))
    saved = directory / "model.pt"
    if saved.exists():
        model.load_state_dict(torch.load(saved))
    replica = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.05)
    inputs, labels = torch.randn(16, 784), torch.randint(0, 10, (16,))
    with open(directory / f"steps.{os.getpid()}", "w", buffering=1, encoding="ascii") as log:
        while True:
            begin = time.time()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(replica(inputs), labels).backward()
            optimizer.step()
            if dist.get_rank() == 0:
                torch.save(model.state_dict(), directory / "model.new")
                os.replace(directory / "model.new", saved)
            time.sleep(max(0.0, step_ms / 1e3 - (time.time() - begin)))
            log.write(f"{time.time():.6f}\n")


def steps_since(directory: pathlib.Path, since: float) -> dict[int, list[float]]:
    """By process that began to step after this time: when it did each step."""
    lives = {}
    for path in directory.glob("steps.*"):
        times = [float(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        if times and times[0] > since:
            lives[int(path.suffix[1:])] = times
    return lives


def wait_for_steps(directory: pathlib.Path, since: float) -> dict[int, list[float]]:
    deadline = time.time() + LIMIT_S
    while time.time() < deadline:
        lives = steps_since(directory, since)
        if sum(len(times) > SETTLE_STEPS for times in lives.values()) == WORKERS:
            return lives
        time.sleep(0.05)
    raise RuntimeError(f"no {WORKERS} workers step together within {LIMIT_S:.0f} s")


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


def measure(arguments: argparse.Namespace) -> None:
    directory = arguments.directory / "torchrun"
    directory.mkdir(parents=True)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={WORKERS}",
               "--max-restarts=1000000", "--monitor-interval=0.1", __file__, "--train",
               "--step-ms", str(arguments.step_ms), "--directory", str(directory)]
    total, stood = [], []
    with open(directory / "log", "ab") as log:
        agent = subprocess.Popen(command, env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=log, stderr=log)
    lives: dict[int, list[float]] = {}
    try:
        lives = wait_for_steps(directory, 0.0)
        for number in range(arguments.rounds):
            victim = sorted(lives)[number % WORKERS]
            fault = time.time()
            os.kill(victim, signal.SIGKILL)
            lives = wait_for_steps(directory, fault)
            before = [float(line) for path in directory.glob("steps.*") if int(path.suffix[1:]) not in lives
                      for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
            first = max(times[0] for times in lives.values())
            total.append((first - fault) * 1e3)
            stood.append((first - max(before)) * 1e3)
    finally:
        agent.terminate()
        agent.wait()
    figures = {"bench": "torchrun", "fault": "kill_worker", "kills": len(total), "step_ms": arguments.step_ms}
    for name, values in (("total", total), ("stood", stood)):
        figures[f"{name}_p50_ms"] = round(percentile(values, 0.5), 1)
        figures[f"{name}_p95_ms"] = round(percentile(values, 0.95), 1)
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--step-ms", type=float, default=7.0)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.directory, arguments.step_ms)
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
