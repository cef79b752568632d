"""Times torch.distributed.checkpoint for checkpoint.sh: a state of so many MiB, saved by one process, durable.

Prints a line `NAME SECONDS` for each figure, medians:
  save              until save() returns
  async_save_stall  until async_save() returns, when training would go on
  async_save        until its checkpoint is there
  load              until load() has filled the state again
"""

import argparse
import os
import shutil
import statistics
import time

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29517")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

TENSORS = 16


def timed(call):
    begin = time.monotonic()
    result = call()
    return time.monotonic() - begin, result


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--mib", type=int, required=True)
    arguments.add_argument("--rounds", type=int, required=True)
    arguments.add_argument("--dir", required=True)
    arguments = arguments.parse_args()
    dist.init_process_group("gloo", rank=0, world_size=1)
    values = arguments.mib * (1 << 20) // TENSORS // 4
    state = {f"weight{i}": torch.randn(values) for i in range(TENSORS)}
    figures = {name: [] for name in ("save", "async_save_stall", "async_save", "load")}
    for _ in range(arguments.rounds):
        shutil.rmtree(arguments.dir, ignore_errors=True)
        seconds, _ = timed(lambda: dcp.save(state, checkpoint_id=arguments.dir))
        figures["save"].append(seconds)
        seconds, _ = timed(lambda: dcp.load(state, checkpoint_id=arguments.dir))
        figures["load"].append(seconds)
        shutil.rmtree(arguments.dir)
        begin = time.monotonic()
        stall, future = timed(lambda: dcp.async_save(state, checkpoint_id=arguments.dir))
        future.result()
        figures["async_save_stall"].append(stall)
        figures["async_save"].append(time.monotonic() - begin)
    shutil.rmtree(arguments.dir, ignore_errors=True)
    for name, seconds in figures.items():
        print(name, f"{statistics.median(seconds):.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
