"""Exports a model that draws random numbers, and writes what PyTorch's own draws give on the average.

A development tool: the tests need no Python. Needs torch, numpy, onnx and onnxscript.

    python3 tests/conformance/pytorch/random_models.py tests/conformance/pytorch/random

Writes noisy.onnx, noisy.inputs.npy, noisy.labels.npy, and noisy.moments.txt: the number of draws, then for the loss in
training, the loss in evaluation and the sum of each parameter's gradient, element i times cos(i), `name mean
deviation`, over all draws with the weights of the file.
"""
import math
import pathlib
import sys
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional

from import_models import export

DRAWS = 6000


class StochasticDepth(nn.Module):
    """Leaves a sample's branch out, with one number per sample."""

    def forward(self, x):
        if not self.training:
            return x
        noise = torch.empty([x.shape[0]] + [1] * (x.dim() - 1), dtype=x.dtype)
        return x * noise.bernoulli_(0.75).div_(0.75)


class DropPath(nn.Module):
    """The same as older code spells it."""

    def forward(self, x):
        if not self.training:
            return x
        return x.div(0.8) * (0.8 + torch.rand(x.shape[0], 1)).floor_()


class Noisy(nn.Module):
    """Layers that drop out in training, and draws that go on in evaluation: latent numbers, gates, and two choices."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.planes = nn.Dropout2d(0.3)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.depth = StochasticDepth()
        self.fc1 = nn.Linear(64, 16)
        self.drop = nn.Dropout(0.2, inplace=True)
        self.fc2 = nn.Linear(16, 16)
        self.path = DropPath()
        self.alpha = nn.AlphaDropout(0.25)
        self.latent = nn.Linear(16, 16)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        c = self.planes(torch.relu(self.conv1(x)))
        c = c + self.depth(self.conv2(c))
        h = torch.tanh(self.drop(self.fc1(c.flatten(1))))
        h = self.alpha(functional.selu(h + self.path(self.fc2(h))))
        mean, spread = self.latent(h).chunk(2, 1)
        z = mean + torch.exp(0.5 * spread) * torch.randn_like(mean)
        z = z * torch.bernoulli(torch.sigmoid(mean.detach()))
        y = self.head(z)
        chosen = torch.multinomial(torch.softmax(y.detach(), 1), 1)[:, 0]
        y = y + 0.5 * functional.one_hot(chosen, 5).float()
        return y + functional.gumbel_softmax(y, tau=1.5) + 0.1 * torch.rand(x.shape[0], 5)


def moments(model, inputs, labels):
    numbers = {}

    def note(name, value):
        count, mean, squares = numbers.get(name, (0, 0.0, 0.0))
        delta = value - mean
        mean += delta / (count + 1)
        numbers[name] = (count + 1, mean, squares + delta * (value - mean))

    for _ in range(DRAWS):
        model.train()
        model.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()
        note("loss", loss.item())
        for key, parameter in model.named_parameters():
            gradient = parameter.grad.double().flatten()
            note(key, (gradient * torch.arange(gradient.numel()).double().cos()).sum().item())
        model.eval()
        with torch.no_grad():
            note("evaluation", functional.cross_entropy(model(inputs), labels).item())
    return [f"{key} {mean:.9g} {math.sqrt(squares / (count - 1)):.9g}" for key, (count, mean, squares) in numbers.items()]


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(7)
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    noisy = Noisy().train()
    images = torch.randn(8, 1, 6, 6)
    classes = torch.randint(0, 5, (8,))
    export(noisy, (images,), target / "noisy.onnx", 20)
    numpy.save(target / "noisy.inputs.npy", images.numpy())
    numpy.save(target / "noisy.labels.npy", classes.numpy())
    lines = moments(noisy, images, classes)
    (target / "noisy.moments.txt").write_text("\n".join([f"draws {DRAWS}"] + lines) + "\n")
