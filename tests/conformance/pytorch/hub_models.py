"""Models of transformers and timm train under Lockstep as in PyTorch: the loss of every step and the final weights.

Needs torch, numpy, onnx, onnxscript, transformers and timm; hub_models.sh brings them.

    hub_models.py LOCKSTEP FOLDER [MODEL...]

LOCKSTEP is the program, FOLDER takes what is made. One line per model; the last is `N passed, N failed`.

Each model is small, begins with random weights of a fixed seed and takes STEPS steps on one batch. PyTorch trains it in
float64, and twice in float32: with the samples in their order and in reverse, which rounds otherwise. Lockstep computes
in float32, so it may be as far from float64 as PyTorch's float32 is, and not much farther. (Some models cast to float32
themselves, in norms and tables of positions; their float64 is what PyTorch makes of them.) A model whose float32 is
farther than FAITHFUL from its float64 says nothing about Lockstep and counts as failed.
"""
import copy
import functools
import logging
import pathlib
import shutil
import subprocess
import sys
import traceback
import warnings
from typing import NamedTuple

import numpy
import onnx
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "deploy" / "python"))
import lockstep  # noqa: E402
from event_curves import curve  # noqa: E402
from hub_families import CASES  # noqa: E402

STEPS = 6
TIMES, FLOOR = 4, 5e-7   # how far from float64: TIMES what PyTorch's float32 is, and FLOOR
FAITHFUL = 1e-5
SMALL = 0.01             # weights of this size count as near 0
SHARED = "bert"          # the model that two workers train
JOB = """
name: hub
model: {{onnx: m.onnx, loss: softmax_cross_entropy}}
data:
  train: {{inputs: data.npz}}
train:
  duration: {steps}steps
  global_batch_size: {batch}
  logical_shards: {shards}
  optimizer: {{name: sgd, lr: {rate}, momentum: 0.9}}
observe: {{http: off}}
"""


class Trained(NamedTuple):
    losses: list   # of each step, before its update
    weights: dict


def train_in_pytorch(model, case, dtype):
    model = copy.deepcopy(model).to(dtype).train()
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in case.inputs]
    optimizer = torch.optim.SGD(model.parameters(), lr=case.rate, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = model(*inputs)
        loss = nn.functional.cross_entropy(scores.flatten(0, -2), case.labels.flatten(), ignore_index=-100)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return Trained(losses, model.state_dict())


def train_in_lockstep(program, folder, case, workers=1, shards=1):
    """Trains `folder`/m.onnx and returns its losses and weights."""
    names = [entry.name for entry in onnx.load(folder / "m.onnx").graph.input]
    arrays = {name: value.numpy() for name, value in zip(names, case.inputs, strict=True)}
    numpy.savez(folder / "data.npz", labels=case.labels.numpy(), **arrays)
    job, directory = folder / "job.yaml", folder / f"job_{workers}_{shards}"
    job.write_text(JOB.format(steps=STEPS, batch=len(case.labels), shards=shards, rate=case.rate))
    run(program, "run", job, "--workers", workers, "--dir", directory)
    losses = curve(directory, "loss")
    assert sorted(losses) == list(range(1, STEPS + 1)), f"the events have the losses of steps {sorted(losses)}"
    model = case.make()
    lockstep.load(directory, model, strict=True)
    return Trained([losses[step] for step in sorted(losses)], model.state_dict())


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-300:]
        raise AssertionError(f"lockstep {words[0]} ended with {done.returncode}: {said}")
    return done.stdout


def loss_distance(mine, theirs):
    return max(abs(a - b) / abs(b) for a, b in zip(mine, theirs, strict=True))


def weight_distance(mine, theirs):
    """Root mean squares: of the difference, over that of the tensor. A tensor near 0 is measured against SMALL."""
    mine, theirs = mine.double(), theirs.double()
    return ((mine - theirs).square().mean().sqrt() / (theirs.square().mean().sqrt() + SMALL)).item()


def distances(mine, exact):
    """How far losses and each tensor are from those of float64, by name."""
    assert mine.weights.keys() == exact.weights.keys(), mine.weights.keys() ^ exact.weights.keys()
    found = {name: weight_distance(value, exact.weights[name]) for name, value in mine.weights.items()}
    return {"the loss": loss_distance(mine.losses, exact.losses), **found}


def reference(model, case):
    """What PyTorch makes in float64, and how far its float32 is from that."""
    exact = train_in_pytorch(model, case, torch.float64)
    backwards = case._replace(inputs=tuple(x.flip(0) for x in case.inputs), labels=case.labels.flip(0))
    tried = [distances(train_in_pytorch(model, order, torch.float32), exact) for order in (case, backwards)]
    return exact, {name: max(own[name] for own in tried) for name in tried[0]}


def compare(mine, exact, own):
    """Says how near `mine` is to `exact`. Raises AssertionError unless PyTorch's float32 is about as far."""
    found = distances(mine, exact)
    drift, drifting = max((value, name) for name, value in own.items())
    assert drift <= FAITHFUL, f"says nothing: {drifting} of PyTorch's float32 is {drift:.1e} from float64"
    for name, value in found.items():
        limit = TIMES * own[name] + FLOOR
        assert value <= limit, f"{name} is {value:.1e} from PyTorch's float64, and PyTorch's float32 is {own[name]:.1e}"
    weight = max(value for name, value in found.items() if name != "the loss")
    own_weight = max(value for name, value in own.items() if name != "the loss")
    return (f"from float64: losses {found['the loss']:.1e} (PyTorch {own['the loss']:.1e}), "
            f"weights {weight:.1e} (PyTorch {own_weight:.1e})")


def dropping(model):
    """Layers that drop at random, whose training cannot be compared."""
    return [name or type(layer).__name__ for name, layer in model.named_modules()
            if getattr(layer, "drop_rate", 0) or getattr(layer, "drop_prob", 0)
            or (isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p)]


def new_model(case):
    torch.manual_seed(1)
    model = case.make().train()
    assert not dropping(model), f"{dropping(model)[0]} drops at random; set its rate to 0"
    return model


def check(program, folder, name):
    case = CASES[name]()
    model = new_model(case)
    exact, own = reference(model, case)
    lockstep.export(model, case.inputs, folder / "m.onnx")
    return compare(train_in_lockstep(program, folder, case), exact, own)


def check_two_workers(program, folder):
    """Two workers make the bytes that one makes, and the numbers of PyTorch."""
    case = CASES[SHARED]()
    model = new_model(case)
    exact, own = reference(model, case)
    lockstep.export(model, case.inputs, folder / "m.onnx")
    said = compare(train_in_lockstep(program, folder, case, workers=2, shards=2), exact, own)
    train_in_lockstep(program, folder, case, workers=1, shards=2)
    digests = [run(program, "checkpoint", "digest", folder / f"job_{workers}_2") for workers in (1, 2)]
    assert digests[0] == digests[1], f"two workers made {digests[1]}, one made {digests[0]}"
    return said


def in_short(error):
    """The cause of an error, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]


def checks(program):
    """A function per name that takes a folder, and returns what it found or raises."""
    found = {name: functools.partial(check, program, name=name) for name in CASES}
    found[f"{SHARED}_two_workers"] = functools.partial(check_two_workers, program)
    return found


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    program, target = sys.argv[1], pathlib.Path(sys.argv[2])
    every = checks(program)
    passed, failed = 0, 0
    for name in sys.argv[3:] or every:
        folder = target / name
        folder.mkdir(parents=True)
        try:
            print(f"{name}: {every[name](folder)}", flush=True)
            passed += 1
        except Exception as error:
            print(f"{name}: FAILED: {in_short(error)}", flush=True)
            traceback.print_exc()
            failed += 1
        shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
