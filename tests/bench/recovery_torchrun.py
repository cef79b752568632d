"""How long torchrun needs to have a job of three workers step again after one is killed, at a given step time.

One elastic agent with three workers: the case in which torchrun has least to do, for no agents need to find each other
again. A worker trains a small model under DistributedDataParallel with Gloo; rank 0 saves the model after every step,
and all load it at a restart, so that no more than the broken step is lost. Counted is the time from SIGKILL of one
worker to the first step of the slowest of the three that the agent starts then. Where none comes within a minute, or
four times as long as the first start took, the run has died; the agent is started again.

Prints one JSON object in the form of recovery_bench. Needs torch; nothing else of Lockstep does.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time

import recovery_peers as peers


def train(directory: pathlib.Path, step_ms: float) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = peers.make_model()
    saved, step = directory / "model.pt", 0
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        step = state["step"]
    replica = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.05)
    inputs, labels = peers.make_batch()
    log = peers.StepLog(directory, step_ms)
    while True:
        step += 1
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(replica(inputs), labels).backward()
        optimizer.step()
        if dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "step": step}, directory / "model.new")
            os.replace(directory / "model.new", saved)
        log.done(step, dist.get_world_size())


class Agent:
    def __init__(self, directory: pathlib.Path, step_ms: float):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1",
                   f"--nproc-per-node={peers.WORKERS}", "--max-restarts=1000000", "--monitor-interval=0.1", __file__,
                   "--train", "--step-ms", str(step_ms), "--directory", str(directory)]
        self._directory = directory
        # Workers that share the agent's store find the addresses of the group before there, and never meet: torch 2.15
        # gives a new group no keys of its own. With a store that each group makes they do.
        environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
                           TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
        with open(directory / "log", "ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def check(self) -> None:
        if self._process.poll() is not None:
            raise TimeoutError(f"the agent ended with {self._process.returncode}")

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            pass
        # Workers have sessions of their own or not, as the version of the agent likes.
        for pid in peers.read_lives(self._directory):
            if peers.is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()


def measure(arguments: argparse.Namespace) -> None:
    directory = arguments.directory / "torchrun"
    directory.mkdir(parents=True)
    figures = peers.Figures()
    agent = None
    try:
        for number in range(arguments.rounds):
            if agent is None:
                begin = time.time()
                agent = Agent(directory, arguments.step_ms)
                lives = peers.wait_for_steps(directory, begin, peers.WORKERS, peers.START_LIMIT_S, agent.check)
                limit = peers.limit_after(time.time() - begin)
            fault = time.time()
            os.kill(sorted(lives)[number % peers.WORKERS], signal.SIGKILL)
            try:
                after = peers.wait_for_steps(directory, fault + 0.5, peers.WORKERS, limit, agent.check)
            except TimeoutError as died:
                print(f"recovery_torchrun.py: {died}", file=sys.stderr)
                figures.died += 1
                agent.end()
                agent = None
                continue
            everything = peers.read_lives(directory)
            after = {pid: everything[pid] for pid in after}
            figures.add({pid: steps for pid, steps in everything.items() if pid in lives}, after, fault)
            lives = after
    finally:
        if agent is not None:
            agent.end()
    figures.print("torchrun")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.directory, arguments.step_ms)
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
