"""How long torchrun's elastic agents need to have a job of three workers step again, at a given step time.

Three agents, each with one worker, as on three machines; a worker trains a small model under DistributedDataParallel
with Gloo, sleeps until a step has taken --step-ms, and writes when each step was done. A fault is SIGKILL of one worker
(kill_worker) or of its agent and the worker with it (kill_agent), which is started again once the others step. Rank 0
saves the model after each step and all load it at a restart, so that no more than a step is lost; the copy is small.
Counted is the time from the signal to the first step of a later round that a process of each other agent has made.
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

AGENTS = 3
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
    agent, attempt = os.environ["AGENT"], os.environ["TORCHELASTIC_RESTART_COUNT"]
    with open(directory / f"steps.{agent}.{os.getpid()}", "w", buffering=1) as log:
        while True:
            begin = time.time()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(replica(inputs), labels).backward()
            optimizer.step()
            if dist.get_rank() == 0:
                torch.save(model.state_dict(), directory / "model.new")
                os.replace(directory / "model.new", saved)
            time.sleep(max(0.0, step_ms / 1e3 - (time.time() - begin)))
            log.write(f"{time.time():.6f} {dist.get_world_size()} {attempt}\n")


def start_agent(arguments: argparse.Namespace, agent: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1:3", "--nproc-per-node=1",
               "--max-restarts=1000000", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{arguments.port}",
               "--rdzv-id=recovery", "--monitor-interval=0.1", "--rdzv-conf=last_call_timeout=1",
               __file__, "--train", "--step-ms", str(arguments.step_ms), "--directory", str(arguments.directory)]
    log = open(arguments.directory / f"agent.{agent}", "ab")
    return subprocess.Popen(command, env=dict(os.environ, AGENT=str(agent), OMP_NUM_THREADS="1"), stdout=log,
                            stderr=log, start_new_session=True)


def steps_of(directory: pathlib.Path, agent: int) -> dict[int, list[tuple[float, int]]]:
    """By process: when each step was done, and with how many."""
    result = {}
    for path in directory.glob(f"steps.{agent}.*"):
        lines = [line.split() for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        result[int(path.name.rsplit(".", 1)[1])] = [(float(line[0]), int(line[1])) for line in lines]
    return result


def newest(directory: pathlib.Path, agent: int) -> tuple[int, list[tuple[float, int]]]:
    lives = {pid: steps for pid, steps in steps_of(directory, agent).items() if steps}
    return max(lives.items(), key=lambda life: life[1][-1][0]) if lives else (0, [])


def wait_until_settled(directory: pathlib.Path, world: int, after: float) -> None:
    deadline = time.time() + LIMIT_S
    while time.time() < deadline:
        lives = [newest(directory, agent)[1] for agent in range(AGENTS)]
        together = [[s for s in life if s[0] > after and s[1] == world][SETTLE_STEPS:] for life in lives]
        if sum(1 for life in together if life) >= world:
            return
        time.sleep(0.05)
    raise RuntimeError(f"no {world} workers step together within {LIMIT_S:.0f} s")


def first_step_after(directory: pathlib.Path, agent: int, fault: float, old_pid: int) -> float | None:
    """The first step after the fault by a process that this agent has started since."""
    times = [s[0] for pid, steps in steps_of(directory, agent).items() if pid != old_pid for s in steps if s[0] > fault]
    return min(times) if times else None


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


def measure(arguments: argparse.Namespace) -> None:
    directory = arguments.directory
    agents = [start_agent(arguments, agent) for agent in range(AGENTS)]
    total, stood, failed = [], [], 0
    try:
        wait_until_settled(directory, AGENTS, 0.0)
        for round_number in range(arguments.rounds):
            # The first agent serves the rendezvous: it is never the victim.
            victim = 1 + round_number % (AGENTS - 1)
            others = [agent for agent in range(AGENTS) if agent != victim]
            before = {agent: newest(directory, agent) for agent in range(AGENTS)}
            fault = time.time()
            if arguments.fault == "kill_agent":
                os.killpg(agents[victim].pid, signal.SIGKILL)
            os.kill(before[victim][0], signal.SIGKILL)
            deadline, firsts = time.time() + LIMIT_S, []
            while time.time() < deadline:
                firsts = [first_step_after(directory, agent, fault, before[agent][0]) for agent in others]
                if all(firsts):
                    break
                time.sleep(0.02)
            if not all(firsts):
                failed += 1
            else:
                total.append((max(firsts) - fault) * 1e3)
                last = max(newest_before(directory, agent, before[agent][0]) for agent in others)
                stood.append((max(firsts) - last) * 1e3)
            if arguments.fault == "kill_agent":
                agents[victim].wait()
                agents[victim] = start_agent(arguments, victim)
            wait_until_settled(directory, AGENTS, time.time())
    finally:
        for agent in agents:
            for pid in [newest(directory, agents.index(agent))[0]]:
                if pid:
                    subprocess.run(["kill", "-9", str(pid)], stderr=subprocess.DEVNULL, check=False)
            try:
                os.killpg(agent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    figures = {"bench": "torchrun", "fault": arguments.fault, "kills": len(total), "never": failed,
               "step_ms": arguments.step_ms}
    for name, values in (("total", total), ("stood", stood)):
        figures[f"{name}_p50_ms"] = round(percentile(values, 0.5), 1)
        figures[f"{name}_p95_ms"] = round(percentile(values, 0.95), 1)
    print(json.dumps(figures))


def newest_before(directory: pathlib.Path, agent: int, pid: int) -> float:
    return steps_of(directory, agent)[pid][-1][0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--fault", choices=["kill_worker", "kill_agent"], default="kill_worker")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--step-ms", type=float, default=7.0)
    parser.add_argument("--port", type=int, default=29517)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.directory, arguments.step_ms)
        return
    arguments.directory = arguments.directory / f"torchrun.{arguments.fault}"
    arguments.directory.mkdir(parents=True)
    measure(arguments)


if __name__ == "__main__":
    main()
