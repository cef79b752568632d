"""Exports small PyTorch models as users do, trains them here for some steps, and writes what Lockstep has to reproduce.

A development tool: the tests need no Python. Needs torch, numpy, onnx and onnxscript.

    python3 tests/conformance/pytorch/import_models.py tests/conformance/pytorch/import

Per model NAME: NAME.onnx (with initial weights), NAME.inputs.npy and NAME.labels.npy (one batch, every step takes all of
it, so that the order of samples does not matter), NAME.losses.txt (the loss of each step, then `name sum norm` of every
parameter and statistic at the end).
"""
import pathlib
import sys

import numpy
import onnx
import torch
from torch import nn

STEPS = 20


class Cnn(nn.Module):
    """Convolutions with and without bias, batch normalisation, pooling, a dense layer."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3, stride=2)
        self.fc = nn.Linear(8 * 2 * 2, 5)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv1(x)))
        x = torch.max_pool2d(x, 2)
        x = torch.relu(self.conv2(x))
        return self.fc(x.flatten(1))


class Mlp(nn.Module):
    """Dense layers with a tanh and a sigmoid between them."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 16)
        self.fc2 = nn.Linear(16, 12)
        self.fc3 = nn.Linear(12, 5)

    def forward(self, x):
        x = torch.tanh(self.fc1(x.flatten(1)))
        return self.fc3(torch.sigmoid(self.fc2(x)))


class Attention(nn.Module):
    """One transformer block over the rows of the input, with layer norms, GELU and a residual path."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(12, 16)
        self.norm1 = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.norm2 = nn.LayerNorm(16)
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.embed(x.squeeze(1))
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(c, dim=2)
        q, k, v = (m.reshape(b, t, 4, c // 4).transpose(1, 2) for m in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / 2.0, dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(dim=1))


MODELS = {"cnn": (Cnn, (32, 1, 12, 12)), "mlp": (Mlp, (32, 1, 6, 6)), "attention": (Attention, (32, 1, 12, 12))}


def strip_traces(path):
    """Takes out where in which file of this machine each node came from."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if "stack_trace" not in entry.key]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def write(name, directory):
    torch.manual_seed(7)
    make, shape = MODELS[name]
    model = make().train()
    inputs = torch.randn(shape)
    labels = torch.randint(0, 5, (shape[0],))
    torch.onnx.export(model, (inputs,), directory / f"{name}.onnx", optimize=False, verbose=False, external_data=False,
                      dynamic_shapes=({0: torch.export.Dim("batch")},))
    strip_traces(directory / f"{name}.onnx")
    numpy.save(directory / f"{name}.inputs.npy", inputs.numpy())
    numpy.save(directory / f"{name}.labels.npy", labels.numpy())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    lines = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        lines.append(f"{loss.item():.9g}")
    for key, value in model.state_dict().items():
        if key.endswith("num_batches_tracked"):
            continue
        lines.append(f"{key} {value.double().sum().item():.9g} {value.double().norm().item():.9g}")
    (directory / f"{name}.losses.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in MODELS:
        write(each, target)
