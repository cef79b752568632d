"""One and two workers of Lockstep beside one and two ranks of PyTorch's DistributedDataParallel; see vs_ddp.sh.

A run of ours is a job with chief and workers, its speed the mean of all its steps by the statistics of the first
worker; one of PyTorch's is a process per rank that trains the same model on its part of the same batch, its speed the
mean of its steps after the first five. Runs of so many steps as fill the seconds asked for go in turns.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import vs_pytorch


def rank_main(arguments):
    """A rank of PyTorch: trains so many steps, and prints the seconds of one (rank 0)."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(1)
    make, data, batch = vs_pytorch.models()[arguments.model]
    model = make().train()
    inputs, labels = data(batch // arguments.size)
    if arguments.size > 1:
        dist.init_process_group("gloo", rank=arguments.rank, world_size=arguments.size,
                                init_method="tcp://127.0.0.1:" + arguments.port)
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if vs_pytorch.is_text(arguments.model):
        update = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    else:
        update = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    for step in range(arguments.steps + 5):
        if step == 5:
            begin = time.perf_counter()
        update.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs).flatten(0, -2), labels.flatten()).backward()
        update.step()
    if arguments.rank == 0:
        print((time.perf_counter() - begin) / arguments.steps)


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def torch_run(arguments, name, size, steps):
    """Seconds per step."""
    command = [sys.executable, __file__, "--model", name, "--size", str(size), "--steps", str(steps), "--port",
               free_port(), "--rank"]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen(command + [str(rank)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env=environment) for rank in range(size)]
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"vs_ddp.py: a rank of {name} failed")
    return float(outputs[0])


def write_job(arguments, name):
    """The model as ONNX, data of the right shape, and a job of both; the job's path."""
    import numpy
    _, _, batch = vs_pytorch.models()[name]
    at = os.path.join(arguments.directory, name)
    subprocess.run([sys.executable, vs_pytorch.__file__, "--export", name, "--to", at + ".onnx"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    random = numpy.random.default_rng(1)
    if vs_pytorch.is_text(name):
        length = 128 if name == "gpt4x128" else 256
        text = at + ".text"
        random.integers(0, 256, 2_000_000, dtype=numpy.uint8).tofile(text)
        subprocess.run([arguments.lockstep, "data", "tokenize", "--bytes", text, "-o", at + ".bin"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        data = f"{{tokens: {at}.bin, sequence_length: {length}}}"
        optimizer = "{name: adamw, lr: 1e-4, weight_decay: 0.01}"
    else:
        shape = (1, 28, 28) if name == "lenet" else (3, 32, 32)
        numpy.save(at + ".x.npy", random.standard_normal((4096, *shape), dtype=numpy.float32))
        numpy.save(at + ".y.npy", random.integers(0, 10, 4096))
        data = f"{{inputs: {at}.x.npy, labels: {at}.y.npy}}"
        optimizer = "{name: sgd, lr: 1e-3, momentum: 0.9}"
    with open(at + ".yaml", "w") as job:
        # Of the GPTs there are as many classes as tokens: which dimension they are has to be said.
        axis = "last" if name.startswith("gpt") else "auto"
        job.write(f"name: {name}\nmodel: {{onnx: {at}.onnx, loss: softmax_cross_entropy, class_axis: {axis}}}\n"
                  f"data: {{train: {data}}}\n"
                  f"train: {{seed: 1, duration: 100steps, global_batch_size: {batch}, logical_shards: 2, "
                  f"optimizer: {optimizer}}}\n"
                  "checkpoint: {every: 1000000steps}\n")
    return at + ".yaml"


def start_job(arguments, directory, job, size, steps, settings=()):
    subprocess.run(["rm", "-rf", directory], check=True)
    command = [arguments.lockstep, "run", job, "--workers", str(size), "--dir", directory]
    for setting in [f"train.duration={steps}steps", *settings, *arguments.set]:
        command += ["--set", setting]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def seconds_per_step(job, directory):
    output = job.communicate()[0]
    if job.returncode:
        raise SystemExit(f"vs_ddp.py: a job failed:\n{output[-2000:]}")
    with open(os.path.join(directory, "stats", "worker_stats.json")) as stats:
        worker = json.load(stats)["workers"][0]
    return worker["step_seconds"] / worker["steps"]


def our_run(arguments, job, size, steps):
    """Seconds per step."""
    directory = os.path.join(arguments.directory, "run")
    return seconds_per_step(start_job(arguments, directory, job, size, steps), directory)


def apart_run(arguments, job, batch, steps):
    """Seconds per step of two jobs at once, of one worker and half of the batch each, that know nothing of each other."""
    half = [f"train.global_batch_size={batch // 2}", "train.logical_shards=1"]
    directories = [os.path.join(arguments.directory, f"apart{i}") for i in range(2)]
    jobs = [start_job(arguments, directory, job, 1, steps, half) for directory in directories]
    return statistics.mean([seconds_per_step(*pair) for pair in zip(jobs, directories)])


def compare(arguments, name):
    _, _, batch = vs_pytorch.models()[name]
    job = write_job(arguments, name)
    ways = {"ours_1": lambda n: our_run(arguments, job, 1, n), "ours_2": lambda n: our_run(arguments, job, 2, n),
            "ours_apart": lambda n: apart_run(arguments, job, batch, n),
            "ddp_1": lambda n: torch_run(arguments, name, 1, n), "ddp_2": lambda n: torch_run(arguments, name, 2, n)}
    steps = {way: max(20, int(arguments.seconds / run(20))) for way, run in ways.items()}
    rounds = [{way: batch / run(steps[way]) for way, run in ways.items()} for _ in range(arguments.rounds)]
    middle = statistics.median
    result = {"model": name, "busy": arguments.busy}
    result.update({way: round(middle(speeds[way] for speeds in rounds), 2) for way in ways})
    result["second_brings_ours"] = round(middle(s["ours_2"] / s["ours_1"] for s in rounds), 3)
    result["apart_would_bring"] = round(middle(s["ours_apart"] / s["ours_1"] for s in rounds), 3)
    result["second_brings_ddp"] = round(middle(s["ddp_2"] / s["ddp_1"] for s in rounds), 3)
    result["ours_over_ddp_1"] = round(middle(s["ours_1"] / s["ddp_1"] for s in rounds), 3)
    result["ours_over_ddp_2"] = round(middle(s["ours_2"] / s["ddp_2"] for s in rounds), 3)
    return result


def half_a_core():
    """Computes for 5 ms of every 10 until it is killed."""
    while True:
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until:
            pass
        time.sleep(0.005)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int)
    parser.add_argument("--model")
    parser.add_argument("--size", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--port")
    parser.add_argument("--spin", action="store_true")
    parser.add_argument("--lockstep")
    parser.add_argument("--directory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--models", default="lenet,resnet18,gpt4x128,gpt6x384")
    arguments = parser.parse_args()
    if arguments.spin:
        return half_a_core()
    if arguments.rank is not None:
        return rank_main(arguments)
    spinner = subprocess.Popen([sys.executable, __file__, "--spin"]) if arguments.busy else None
    try:
        for name in arguments.models.split(","):
            print(json.dumps(compare(arguments, name)), flush=True)
    finally:
        if spinner is not None:
            spinner.kill()


if __name__ == "__main__":
    main()
