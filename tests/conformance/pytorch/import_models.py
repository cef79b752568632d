"""Exports small PyTorch models as users do, trains them here for some steps, and writes what Lockstep has to reproduce.

A development tool: the tests need no Python. Needs torch, numpy, onnx and onnxscript.

    python3 tests/conformance/pytorch/import_models.py tests/conformance/pytorch/import [NAME...]

Per model NAME: NAME.onnx (with initial weights), NAME.inputs.npy (NAME.inputs.I.npy where there are several) and
NAME.labels.npy (one batch, every step takes all of it, so that the order of samples does not matter), NAME.losses.txt:
the settings, the loss of each step, then `name sum norm gradient-norm` of every tensor of the state dict at the end, the
gradient being that of the first step.

For some models also NAME.gradients.txt, `name elements largest` of every parameter, and NAME.gradients.npy: all elements
of these gradients of the first step, one parameter behind the other, as int16 of which 32767 stands for the largest
absolute value of the parameter.

NAME.bf16.txt (but for FLOAT32_ONLY): the same training with torch.autocast in bfloat16: the loss of each step, then `name gradient-norm`.

Models of EXPORTERS are exported by other calls: NAME_plain as torch.onnx.export(model, inputs, file) does, which merges
batch normalisations by their running statistics (the model that is trained here has them merged too) and renames
weights; NAME_older by the exporter of PyTorch 1.x and early 2.x.
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
GRADIENTS = ("mlp", "resnet18", "gpt2", "bert")
FLOAT32_ONLY = ("quantized", "sampled", "signal")  # PyTorch has not all of their ops in bfloat16
ONLY_OLDER = ("quantized",)  # of PyTorch 2.15's exporters the newer one takes fake_quantize only with a fixed batch
EXPORTERS = {"mlp": ("plain", "older"), "cnn": ("plain", "older"), "attention": ("plain", "older"),
             "lstm": ("plain", "older"), "encoder": ("plain",), "llama": ("plain",)}


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


def export_plain(model, inputs, path):
    torch.onnx.export(model, inputs, path, verbose=False, external_data=False)
    strip_traces(path)


def export_older(model, inputs, path):
    torch.onnx.export(model, inputs, path, dynamo=False, do_constant_folding=False, opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING)


def merge_batch_norms(model):
    """The model that a plain export is of: batch normalisations by their running statistics, inside the convolutions."""
    model.eval()
    pairs = {"conv1": "bn"} if isinstance(model, MODELS["cnn"][0]) else {}
    for conv, norm in pairs.items():
        merged = torch.nn.utils.fusion.fuse_conv_bn_eval(getattr(model, conv), getattr(model, norm))
        setattr(model, conv, merged.requires_grad_())
        setattr(model, norm, nn.Identity())
    return model.train()


def loss_of(scores, labels, smoothing):
    if scores.dim() == 3:
        scores = scores.flatten(0, 1)
    return nn.functional.cross_entropy(scores, labels.flatten(), label_smoothing=smoothing)


def write_gradients(name, model, directory):
    lines, parts = [], []
    for key, value in model.named_parameters():
        gradient = value.grad.double().flatten()
        largest = gradient.abs().max().item()
        lines.append(f"{key} {gradient.numel()} {largest:.9g}")
        parts.append((gradient / (largest or 1) * 32767).round().to(torch.int16))
    (directory / f"{name}.gradients.txt").write_text("\n".join(lines) + "\n")
    numpy.save(directory / f"{name}.gradients.npy", torch.cat(parts).numpy())


def write(name, directory, exporter=None):
    torch.manual_seed(7)
    make, make_inputs, make_labels, rate = MODELS[name]
    smoothing = 0.1 if name == "vit" else 0.0
    model = make().train()
    inputs = make_inputs()
    labels = make_labels(inputs)
    source = name
    if exporter is None:
        if name in ONLY_OLDER:
            export_older(model, inputs, directory / f"{name}.onnx")
        else:
            export(model, inputs, directory / f"{name}.onnx", OPSETS.get(name, 20))
        for i, each in enumerate(inputs):
            numpy.save(directory / (f"{name}.inputs.{i}.npy" if len(inputs) > 1 else f"{name}.inputs.npy"), each.numpy())
        numpy.save(directory / f"{name}.labels.npy", labels.numpy())
    else:
        # The inputs and labels are those of the first export.
        name = f"{source}_{exporter}"
        with torch.no_grad():
            # The plain call makes one weight of two with the same values, as those of new layers are.
            for parameter in model.parameters():
                parameter.add_(0.01 * torch.randn_like(parameter))
        (export_plain if exporter == "plain" else export_older)(model, inputs, directory / f"{name}.onnx")
        if exporter == "plain":
            model = merge_batch_norms(model)
        for key, buffer in model.named_buffers():
            if key.endswith("num_batches_tracked"):
                buffer.zero_()  # the older exporter runs the model once
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
            if exporter is None and name in GRADIENTS:
                write_gradients(name, model, directory)
        optimizer.step()
        lines.append(f"{loss.item():.9g}")
    for key, value in model.state_dict().items():
        value = value.double()
        lines.append(f"{key} {value.sum().item():.9g} {value.norm().item():.9g} {gradients.get(key, 0):.9g}")
    (directory / f"{name}.losses.txt").write_text("\n".join(lines) + "\n")


def write_bf16(name, directory):
    """The training of write(name, directory) with autocast. From the same seed, so with the same weights and data."""
    torch.manual_seed(7)
    make, make_inputs, make_labels, rate = MODELS[name]
    model = make().train()
    inputs = make_inputs()
    labels = make_labels(inputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    lines = []
    gradients = {}
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model(*inputs), labels, 0.1 if name == "vit" else 0.0)
        loss.backward()
        gradients = gradients or {key: value.grad.double().norm().item()
                                  for key, value in model.named_parameters(remove_duplicate=False)}
        optimizer.step()
        lines.append(f"{loss.item():.9g}")
    lines += [f"{key} {norm:.9g}" for key, norm in gradients.items()]
    (directory / f"{name}.bf16.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:] or MODELS:
        write(each, target)
        if each not in FLOAT32_ONLY:
            write_bf16(each, target)
        for exporter in EXPORTERS.get(each, ()):
            write(each, target, exporter)
