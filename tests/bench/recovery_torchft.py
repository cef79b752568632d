"""How long torchft needs to have a job of three workers step again after one is killed, at a given step time.

A lighthouse and three replica groups of one worker each, averaging gradients with Gloo: the arrangement in which the
survivors go on without the dead. Counted is the time from SIGKILL of one worker to the first step that both others
commit without it. Then the worker starts again. Where no such step comes within a minute, or four times
as long as the start took, the run has died; everything is started again.

Prints one JSON object in the form of recovery_bench. Needs torch and torchft (torchft-nightly); nothing else of
Lockstep does.
"""

import argparse
import datetime
import os
import pathlib
import signal
import subprocess
import sys
import time

import recovery_peers as peers


def train(directory: pathlib.Path, step_ms: float, lighthouse: str, replica: str) -> None:
    import torch
    import torch.distributed as dist
    import torchft

    torch.set_num_threads(1)
    model = peers.make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def load(state: dict) -> None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    limit = datetime.timedelta(seconds=5)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=limit), min_replica_size=2, load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()},
        replica_id=replica, store_addr="127.0.0.1", store_port=store.port, rank=0, world_size=1,
        lighthouse_addr=lighthouse, timeout=limit, hostname="127.0.0.1")
    replicated = torchft.DistributedDataParallel(manager, model)
    stepper = torchft.Optimizer(manager, optimizer)
    inputs, labels = peers.make_batch()
    log = peers.StepLog(directory, step_ms)
    while True:
        stepper.zero_grad()
        torch.nn.functional.cross_entropy(replicated(inputs), labels).backward()
        before = manager.current_step()
        stepper.step()
        if manager.current_step() > before:
            log.done(manager.current_step(), manager.num_participants())


class Job:
    def __init__(self, directory: pathlib.Path, step_ms: float):
        from torchft.coordination import LighthouseServer

        self._directory = directory
        self._step_ms = step_ms
        self._lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=2, join_timeout_ms=100,
                                            quorum_tick_ms=20, heartbeat_timeout_ms=1000)
        self._workers: list[subprocess.Popen] = []
        self._started = 0
        for _ in range(peers.WORKERS):
            self.start_worker()

    def start_worker(self) -> None:
        self._started += 1
        command = [sys.executable, __file__, "--train", "--step-ms", str(self._step_ms), "--directory",
                   str(self._directory), "--lighthouse", self._lighthouse.address(), "--replica",
                   f"worker-{self._started}"]
        environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
        with open(self._directory / "log", "ab") as log:
            self._workers.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        for worker in self._workers:
            if worker.pid == pid:
                worker.wait()
        self._workers = [worker for worker in self._workers if worker.pid != pid]

    def check(self) -> None:
        for worker in self._workers:
            if worker.poll() is not None:
                raise TimeoutError(f"a worker ended with {worker.returncode}")

    def end(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._lighthouse.shutdown()


def measure(arguments: argparse.Namespace) -> None:
    directory = arguments.directory / "torchft"
    directory.mkdir(parents=True)
    figures = peers.Figures()
    job = None
    try:
        for number in range(arguments.rounds):
            begin = time.time()
            if job is None:
                job = Job(directory, arguments.step_ms)
            lives = peers.wait_for_steps(directory, begin, peers.WORKERS, peers.START_LIMIT_S, job.check)
            limit = peers.limit_after(time.time() - begin)
            victim = sorted(lives)[number % peers.WORKERS]
            fault = time.time()
            job.kill(victim)
            try:
                after = peers.wait_for_steps(directory, fault, peers.WORKERS - 1, limit, job.check,
                                             members=peers.WORKERS - 1)
            except TimeoutError as died:
                print(f"recovery_torchft.py: {died}", file=sys.stderr)
                figures.died += 1
                job.end()
                job = None
                continue
            everything = peers.read_lives(directory)
            figures.add({pid: everything[pid] for pid in lives}, after, fault)
            job.start_worker()
    finally:
        if job is not None:
            job.end()
    figures.print("torchft")
    sys.stdout.flush()
    os._exit(0)  # threads of the lighthouse outlive its shutdown


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument("--lighthouse", default="")
    parser.add_argument("--replica", default="")
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.directory, arguments.step_ms, arguments.lighthouse, arguments.replica)
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
