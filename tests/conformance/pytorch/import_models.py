"""Exports small PyTorch models as users do, trains them here for some steps, and writes what Lockstep has to reproduce.

A development tool: the tests need no Python. Needs torch, numpy, onnx and onnxscript.

    python3 tests/conformance/pytorch/import_models.py tests/conformance/pytorch/import [NAME...]

Per model NAME: NAME.onnx (with initial weights), NAME.inputs.npy (NAME.inputs.I.npy where there are several) and
NAME.labels.npy (one batch, every step takes all of it, so that the order of samples does not matter), NAME.losses.txt:
the settings, the loss of each step, then `name sum norm gradient-norm` of every tensor of the state dict at the end, the
gradient being that of the first step.
"""
import pathlib
import sys
import warnings

import numpy
import onnx
import torch
from torch import nn

from models import MODELS

STEPS = 20
OPSETS = {"llama_opset23": 23}  # with the Attention op; the others as the exporter chooses


def strip_traces(path):
    """Takes out where in which file of this machine each node came from."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if "stack_trace" not in entry.key]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def export(model, inputs, path, opset):
    batch = torch.export.Dim("batch")
    torch.onnx.export(model, inputs, path, optimize=False, verbose=False, external_data=False,
                      opset_version=opset, dynamic_shapes=tuple({0: batch} for _ in inputs))
    strip_traces(path)


def loss_of(scores, labels, smoothing):
    if scores.dim() == 3:
        scores = scores.flatten(0, 1)
    return nn.functional.cross_entropy(scores, labels.flatten(), label_smoothing=smoothing)


def write(name, directory):
    torch.manual_seed(7)
    make, make_inputs, make_labels, rate = MODELS[name]
    smoothing = 0.1 if name == "vit" else 0.0
    model = make().train()
    inputs = make_inputs()
    labels = make_labels(inputs)
    export(model, inputs, directory / f"{name}.onnx", OPSETS.get(name, 20))
    for i, each in enumerate(inputs):
        numpy.save(directory / (f"{name}.inputs.{i}.npy" if len(inputs) > 1 else f"{name}.inputs.npy"), each.numpy())
    numpy.save(directory / f"{name}.labels.npy", labels.numpy())
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    lines = [f"rate {rate} smoothing {smoothing}"]
    gradients = {}
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(*inputs), labels, smoothing)
        loss.backward()
        if not gradients:
            gradients = {key: value.grad.double().norm().item()
                         for key, value in model.named_parameters(remove_duplicate=False)}
        optimizer.step()
        lines.append(f"{loss.item():.9g}")
    for key, value in model.state_dict().items():
        value = value.double()
        lines.append(f"{key} {value.sum().item():.9g} {value.norm().item():.9g} {gradients.get(key, 0):.9g}")
    (directory / f"{name}.losses.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:] or MODELS:
        write(each, target)
