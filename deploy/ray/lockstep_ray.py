#!/usr/bin/env python3
"""Trains a Lockstep job on a Ray cluster: the chief is an actor, each worker a task.

    python3 lockstep_ray.py JOB --dir DIR --workers 4            on a machine of the cluster, or by `ray job submit`

DIR lies on a file system that all nodes share, or is s3://BUCKET/PREFIX. `lockstep` is in the PATH of every node, and the
data at the paths of the job file. What dies, and what was on a node that is gone, is started again, elsewhere if need be,
as long as the exit code says that this may help. Ends with the chief's exit code, 0 when the job is done; with any other
the same command goes on from what is saved, unless it is one that another start does not mend: 64, 65, 70, 76, 77, 78.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

PREEMPTED = 75
FINAL_OF_WORKER = (0, 64, 65, 76, 77, 78)
FINAL_OF_CHIEF = FINAL_OF_WORKER + (70,)
PR_SET_PDEATHSIG = 1


def say(text):
    print(f"lockstep_ray: {text}", file=sys.stderr, flush=True)


def exit_code(process):
    """As a shell has it: 128 and the signal."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, max_concurrency=64)
class Chief:
    """Holds the process of the chief. When this actor or its node dies, Ray starts it again, and `run` with it."""

    def __init__(self, lockstep, job, directory, arguments):
        self._folder = tempfile.TemporaryDirectory(prefix="lockstep-")
        self._address_file = os.path.join(self._folder.name, "address")
        job_file = os.path.join(self._folder.name, "job.yaml")
        with open(job_file, "w", encoding="utf-8") as file:
            file.write(job)
        listen = f"{ray.util.get_node_ip_address()}:0"
        self._command = [lockstep, "chief", job_file, "--dir", directory, "--listen", listen,
                         "--stop-on-sigterm"]
        self._command += ["--address-file", self._address_file, *arguments]
        self._credential_command = [lockstep, "token", "--dir", directory, "--role", "join"]
        self._credential = None
        self._process = None
        self._stopping = False

    def run(self):
        """Blocks until another start cannot help, or `stop`; returns the exit code."""
        crashes = 0
        while not self._stopping:
            started = time.monotonic()
            # It must not outlive this actor: it would hold DIR against its successor.
            libc = ctypes.CDLL(None)
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
            if self._stopping:
                self._process.terminate()
            self._process.wait()
            code = exit_code(self._process)
            if code in FINAL_OF_CHIEF or self._stopping:
                return code
            crashes = 1 if time.monotonic() - started >= 60 else crashes + 1
            if code != PREEMPTED and crashes == 3:
                return code
            say(f"the chief ended with {code}; it is started again")
            time.sleep(1)
        return PREEMPTED

    def place(self):
        """The chief's address, and what lets a worker join; None while the chief starts."""
        try:
            with open(self._address_file, encoding="utf-8") as file:
                address = file.readline().strip()
        except FileNotFoundError:
            return None
        if self._credential is None:
            made = subprocess.run(self._credential_command, stdout=subprocess.PIPE, text=True, check=False)
            if made.returncode != 0:
                return None
            self._credential = made.stdout.strip()
        return (address, self._credential) if address else None

    def stop(self):
        """Has the chief save and end; `run` returns."""
        self._stopping = True
        if self._process is not None:
            self._process.terminate()


class Place:
    """Where the chief is, in a file that the worker reads again when it looks for its chief."""

    def __init__(self, chief, folder):
        self._chief = chief
        self.file = os.path.join(folder, "address")
        self.credential = None
        self._address = None

    def look(self):
        """False while no chief is known. One that is away keeps its address until there is another."""
        try:
            place = ray.get(self._chief.place.remote(), timeout=10)
        except (ray.exceptions.GetTimeoutError, ray.exceptions.RayActorError):
            place = None
        if place is not None:
            address, self.credential = place
            if address != self._address:
                with open(self.file + ".new", "w", encoding="utf-8") as file:
                    file.write(address + "\n")
                os.replace(self.file + ".new", self.file)
                self._address = address
        return self._address is not None


def run_worker(command, place):
    """One life of a worker; returns its exit code. When this process dies its input ends, and it leaves."""
    # The credential is in the environment of this one process: on no command line, and in no file of the node.
    environment = dict(os.environ, LOCKSTEP_TOKEN=place.credential)
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        while True:
            try:
                process.wait(timeout=2)
                return exit_code(process)
            except subprocess.TimeoutExpired:
                place.look()


@ray.remote(max_retries=-1, scheduling_strategy="SPREAD")
def work(chief, lockstep, number, arguments):
    """Keeps one worker, on whichever node has room for it; returns an exit code after which no start helps."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        place = Place(chief, folder)
        while not place.look():
            time.sleep(0.5)
        command = [lockstep, "worker", "--chief-file", place.file, "--name", f"worker-{number}", "--notice-eof"]
        pause = 1
        while True:
            started = time.monotonic()
            code = run_worker(command + arguments, place)
            if code in FINAL_OF_WORKER:
                return code
            pause = 1 if time.monotonic() - started >= 10 else min(2 * pause, 16)
            say(f"worker-{number} ended with {code}; it is started again in {pause} s")
            time.sleep(pause)
            place.look()


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", help="the job file; it goes to the chief's node by itself")
    parser.add_argument("--dir", required=True, help="the job's directory, or s3://BUCKET/PREFIX")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cpus", type=float, default=1, help="of a worker: `resources.cpu_threads` of the job (1)")
    parser.add_argument("--gpus", type=float, default=0, help="of a worker: 1, or none (0)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting of the job")
    parser.add_argument("--chief-on", metavar="RESOURCE",
                        help="the custom resource of nodes that are not taken back (default: this program's node)")
    parser.add_argument("--lockstep", default="lockstep", help="the program on every node")
    parser.add_argument("--worker-argument", action="append", default=[], metavar="WORD", help="for `lockstep worker`")
    return parser.parse_args(words)


def start(options):
    """The chief's actor, and the tasks."""
    with open(options.job, encoding="utf-8") as file:
        job = file.read()
    settings = [word for setting in options.set for word in ("--set", setting)]
    if options.chief_on:
        where = {"resources": {options.chief_on: 0.001}}
    else:  # under `ray job submit` the head node, which clusters of spot machines have on one that stays
        node = ray.get_runtime_context().get_node_id()
        where = {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True)}
    arguments = ["--expected-workers", str(options.workers), *settings]
    chief = Chief.options(**where).remote(options.lockstep, job, options.dir, arguments)
    task = work.options(num_cpus=options.cpus, num_gpus=options.gpus)
    workers = [task.remote(chief, options.lockstep, number, options.worker_argument) for number in range(options.workers)]
    return chief, workers


def main(words):
    options = parse(words)
    told = []
    ray.init(log_to_driver=True)
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    chief, workers = start(options)
    chief_ends = chief.run.remote()
    at_work, worker_code, asked = list(workers), 0, False
    while True:
        ready, _ = ray.wait([chief_ends, *at_work], timeout=1)
        if chief_ends in ready:
            break
        for worker in ready:
            at_work.remove(worker)
            worker_code = worker_code or ray.get(worker)
        # At 0 the job is done, and the chief ends by itself.
        if not asked and (told or (not at_work and worker_code != 0)):
            chief.stop.remote()
            asked = True
    code = ray.get(chief_ends)
    if code == PREEMPTED and not told:
        code = worker_code or code
    for worker in at_work:
        ray.cancel(worker)
    if at_work:
        ray.wait(at_work, num_returns=len(at_work), timeout=30)
    say("the job is done" if code == 0 else f"ended with {code}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
