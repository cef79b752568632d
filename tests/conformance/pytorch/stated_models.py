"""Models whose files say, or do not say, that something is not trained: exported and trained here as import_models.py does.

A development tool: the tests need no Python. Needs torch, numpy, onnx and onnxscript.

    python3 tests/conformance/pytorch/stated_models.py tests/conformance/pytorch/stated [NAME...]

Per model NAME: NAME.onnx (with initial weights), and, where it is trained, NAME.inputs.npy, NAME.labels.npy, and
NAME.losses.txt in the form of import_models.py. Stack traces stay where the test is about them: without the names of files.
"""
import pathlib
import re
import sys
import warnings

import numpy
import onnx
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "deploy" / "python"))
import lockstep

STEPS = 20
RATE = 0.1
BATCH, WIDTH, CLASSES = 8, 6, 3


class Detached(nn.Module):
    """A straight-through estimator, and a branch behind detach() with a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.a, self.target, self.b = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES)

    def forward(self, x):
        h = self.a(x)
        h = h + (torch.round(4 * h) / 4 - h).detach()
        return self.b(h * torch.sigmoid(self.target(x)).detach())


class Unseen(nn.Module):
    """A part that is computed without gradients, which leaves no trace but that of a block."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES)

    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            gate = h.mean(1, keepdim=True)
        return self.b(h * gate)


class Norms(nn.Module):
    def __init__(self, tracks=True):
        super().__init__()
        self.a, self.first = nn.Linear(WIDTH, 8), nn.BatchNorm1d(8)
        self.second, self.b = nn.BatchNorm1d(8, momentum=0.3, track_running_stats=tracks), nn.Linear(8, CLASSES)
        for norm in (self.first, self.second):
            with torch.no_grad():
                norm.weight.uniform_(0.5, 1.5)
                if norm.running_mean is not None:
                    norm.running_mean.normal_()
                    norm.running_var.uniform_(0.5, 1.5)

    def forward(self, x):
        return self.b(self.second(torch.relu(self.first(self.a(x)))))


class OneNormInEvaluation(Norms):
    def train(self, mode=True):
        super().train(mode)
        self.first.eval()
        return self


class NormsInEvaluation(Norms):
    """All in evaluation mode, and a dropout that says that the model trains. It drops next to nothing."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(1e-9)

    def train(self, mode=True):
        super().train(mode)
        self.first.eval()
        self.second.eval()
        return self

    def forward(self, x):
        return super().forward(self.drop(x))


class Untracked(Norms):
    def __init__(self):
        super().__init__(tracks=False)


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, 8))
        self.b = nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Averaging(nn.Module):
    """Centres by a moving average of its own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES)
        self.register_buffer("average", torch.zeros(8))

    def forward(self, x):
        h = self.a(x)
        self.average.mul_(0.9).add_(0.1 * h.detach().mean(0))
        return self.b(torch.relu(h - self.average))


class Late(nn.Module):
    """Reads a moving average and then moves it: the exporter leaves out what it becomes."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES)
        self.register_buffer("average", torch.zeros(8))

    def forward(self, x):
        h = self.a(x)
        y = self.b(torch.relu(h - self.average))
        self.average.mul_(0.9).add_(0.1 * h.detach().mean(0))
        return y


class Tables(nn.Module):
    """Tied and unused parameters beside constants: tables that were drifting away must stay."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        self.head = nn.Linear(8, 7, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = nn.Linear(3, 2)
        self.register_buffer("positions", torch.randn(WIDTH, 8))
        self.register_buffer("hidden", torch.randn(8), persistent=False)
        self.plain = torch.randn(8)
        self.register_buffer("rows", torch.randn(WIDTH, 8), persistent=False)

    def forward(self, ids):
        rows = nn.functional.embedding(torch.arange(WIDTH), self.rows)
        h = self.embedding(ids) + self.positions + self.hidden + self.plain + rows
        return self.head(torch.tanh(h).mean(1))


class Tracked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = (nn.Linear(WIDTH, 8), nn.InstanceNorm1d(2, affine=True, track_running_stats=True),
                                     nn.Linear(8, CLASSES))

    def forward(self, x):
        return self.b(self.norm(self.a(x).reshape(-1, 2, 4)).flatten(1))


class Clamped(nn.Module):
    """Changes a parameter itself."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES)

    def forward(self, x):
        with torch.no_grad():
            self.a.weight.clamp_(-0.2, 0.2)
        return self.b(self.a(x))


class Alike(nn.Module):
    """New layers, whose scales, shifts and biases begin alike: the exporters that merge equal tensors write each once."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(WIDTH, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.n, self.m, self.plain = nn.LayerNorm(8), nn.LayerNorm(8), nn.LayerNorm(8, elementwise_affine=False)
        self.norm, self.free = nn.BatchNorm1d(8), nn.BatchNorm1d(8, affine=False)
        self.head = nn.Linear(8, CLASSES)
        self.c.weight = self.b.weight
        for layer in (self.a, self.b):
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        h = self.norm(torch.relu(self.n(self.a(x))))
        h = self.free(torch.relu(self.m(self.b(h))))
        return self.head(self.plain(torch.relu(self.c(h)) + h))


class Noted(nn.Module):
    """What no exporter writes and `lockstep.export` does: frozen, tied and unused tensors, and a norm that has counted."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(WIDTH, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm, self.still, self.unused = nn.BatchNorm1d(8), nn.BatchNorm1d(8), nn.Linear(3, 2)
        self.head = nn.Linear(8, CLASSES)
        self.c.weight = self.b.weight
        self.register_buffer("spare", torch.arange(4))
        self.still.num_batches_tracked.fill_(7)
        for parameter in self.a.parameters():
            parameter.requires_grad_(False)
        self.unused.weight.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.still.eval()
        return self

    def forward(self, x):
        h = self.norm(torch.relu(self.b(self.a(x))))
        return self.head(self.still(torch.relu(self.c(h))))


MODELS = {"detached": Detached, "unseen": Unseen, "one_norm": OneNormInEvaluation, "norms_eval": NormsInEvaluation,
          "untracked": Untracked, "spectral": Spectral, "averaging": Averaging, "late": Late, "tables": Tables,
          "tracked": Tracked, "clamped": Clamped, "noted": Noted, "alike_plain": Alike, "alike_older": Alike}


REFUSED = ("late", "clamped")  # trained by nobody: the file alone is of use


def strip_traces(path):
    """Takes the names of files out of stack traces, except what the exporter calls its own blocks."""
    model = onnx.load(path)
    for node in model.graph.node:
        for entry in node.metadata_props:
            if "stack_trace" in entry.key:
                entry.value = re.sub(r'File "(?!<eval_with_key>)[^"]*".*', 'File ""', entry.value, flags=re.DOTALL)
    onnx.save(model, path)


def export(name, model, inputs, path):
    if name == "noted":
        lockstep.export(model, inputs, path)
    elif name.endswith("_older"):
        # In eval(), where this exporter merges.
        torch.onnx.export(model.eval(), (inputs,), path, dynamo=False, do_constant_folding=False, opset_version=17)
    elif name.endswith("_plain"):
        torch.onnx.export(model, (inputs,), path, verbose=False, external_data=False)
    else:
        torch.onnx.export(model, (inputs,), path, optimize=False, verbose=False, external_data=False, opset_version=20,
                          dynamic_shapes=({0: torch.export.Dim("batch")},))


def write(name, directory):
    torch.manual_seed(3)
    model = MODELS[name]().train()
    tokens = name == "tables"
    inputs = torch.randint(0, 7, (BATCH, WIDTH)) if tokens else torch.randn(BATCH, WIDTH)
    labels = torch.randint(0, 7 if tokens else CLASSES, (BATCH,))
    state = {key: value.clone() for key, value in model.state_dict().items()}
    export(name, model, inputs, directory / f"{name}.onnx")
    strip_traces(directory / f"{name}.onnx")
    if name in REFUSED:
        return
    model.load_state_dict(state)  # the exporter runs the model
    model.train()
    numpy.save(directory / f"{name}.inputs.npy", inputs.numpy())
    numpy.save(directory / f"{name}.labels.npy", labels.numpy())
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    lines = [f"rate {RATE} smoothing 0.0"]
    gradients = {}
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        if not gradients:
            gradients = {key: 0 if value.grad is None else value.grad.double().norm().item()
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
