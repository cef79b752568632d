"""Exports small models of the ops that PyTorch's users put around the large ones, for kernels_test.

A development tool: the tests need no Python. Needs torch, numpy, onnx and onnxscript.

    python3 tests/conformance/pytorch/kernel_models.py tests/conformance/pytorch/kernels

Writes NAME.onnx. Every model takes samples to the scores of 5 classes.
"""
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional

from import_models import export

BATCH = 8


class Words(nn.Module):
    """Words that are normalised, summed up, sorted, multiplied, and their logarithms of sums."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(7, 5)

    def forward(self, ids):
        x = functional.normalize(self.mix(self.table(ids)), dim=-1)
        running = x.cumsum(1)
        top = x.topk(4, dim=-1).values.sum((1, 2))
        ordered = (x.sort(-1).values * torch.arange(16)).sum((1, 2))
        product = (1 + 0.01 * x).prod(1).sum(1)
        features = [running.logsumexp(-1).mean(1), top, ordered, product, running.norm(dim=(1, 2)),
                    x.abs().sum((1, 2)), x.flip(1).square().sum(1).amax(1)]
        return self.head(torch.stack(features, 1))


class Pixels(nn.Module):
    """Blocks of pixels to channels and back, slopes of channels, borders, sizes, planes' maxima and minima."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 16, 3, padding=1, padding_mode="reflect")
        self.slope = nn.PReLU(16)
        self.norm = nn.InstanceNorm2d(4, affine=True)
        self.groups = nn.GroupNorm(2, 4)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = self.slope(self.conv(functional.pixel_unshuffle(x, 2)))
        x = self.norm(functional.pixel_shuffle(x, 2))
        x = self.groups(functional.interpolate(x, scale_factor=0.5, mode="bilinear"))
        x = functional.hardswish(functional.pad(x, (1, 1, 1, 1), mode="replicate"))
        return self.head(torch.cat([x.amax((2, 3)), x.amin((2, 3)), x.std((2, 3))], 1))


class Choices(nn.Module):
    """Elements that are picked and written by index, masks, comparisons, repeats."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(12, 12)
        self.codes = nn.Parameter(torch.randn(6, 12))
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        h = torch.tanh(self.inner(x))
        nearest = (h[:, None] - self.codes).square().sum(-1).argmin(1)
        quantised = h + (self.codes[nearest] - h).detach()
        order = h.argsort(1)
        picked = h.gather(1, order)
        summed = torch.zeros_like(h).scatter_add(1, order.remainder(4), picked)
        bounded = torch.minimum(torch.maximum(picked, -summed.abs()), 0.5 * h.repeat(1, 2)[:, 6:18])
        masked = bounded.masked_fill(h > 0.9, 0.0) + torch.where(h > 0, quantised, 0.1 * h)
        hot = functional.one_hot(h.argmax(1), 12).float()
        return self.head(masked + hot * h.roll(1, 1))


class Waves(nn.Module):
    """Positions as waves, rotated pairs, a triangle of a mixer of tokens, an attention without its op."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 16)
        self.rates = nn.Parameter(torch.rand(8))
        self.mixer = nn.Parameter(torch.randn(6, 6))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        angles = torch.arange(6).float()[:, None] * self.rates
        h = self.inner(x.reshape(-1, 6, 4))
        a, b = h.chunk(2, -1)
        h = torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)
        h = h + torch.einsum("ts,nsd->ntd", torch.tril(self.mixer), h)
        scores = torch.einsum("ntd,nsd->nts", h, h) / 4
        scores = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
        return self.head((functional.softmax(scores, -1) @ h).mean(1))


class Likelihood(nn.Module):
    """Likelihoods and energies."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(12, 12)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        h = self.inner(x)
        energy = torch.atan(h).square().sum(1, keepdim=True) + functional.softplus(h).logsumexp(1, keepdim=True)
        return functional.log_softmax(self.head(h), 1) + 0.1 * torch.log1p(energy) - functional.logsigmoid(energy)


def main():
    warnings.filterwarnings("ignore")
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    models = {
        "words": (Words(), torch.randint(0, 50, (BATCH, 9))),
        "pixels": (Pixels(), torch.randn(BATCH, 3, 12, 12)),
        "choices": (Choices(), torch.randn(BATCH, 12)),
        "waves": (Waves(), torch.randn(BATCH, 24)),
        "likelihood": (Likelihood(), torch.randn(BATCH, 12)),
    }
    for name, (model, inputs) in models.items():
        export(model.train(), (inputs,), target / f"{name}.onnx", 20)


if __name__ == "__main__":
    main()
