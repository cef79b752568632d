"""From PyTorch to Lockstep and back by the Python package: export, train, load strictly, predict, against PyTorch itself.

Needs torch, numpy, onnx and onnxscript; roundtrip.sh brings them.

    roundtrip.py LOCKSTEP FOLDER [MODEL...]

LOCKSTEP is the program, FOLDER takes what is made. One line per model; the last is `N passed, N failed`.
"""
import copy
import pathlib
import subprocess
import sys
import warnings

import numpy
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "deploy" / "python"))
import lockstep  # noqa: E402
from models import MODELS  # noqa: E402
from stated_models import Noted  # noqa: E402

STEPS = 20
JOB = """
name: roundtrip
model: {{onnx: m.onnx, loss: softmax_cross_entropy}}
data:
  train: {{inputs: data.npz}}
  eval: {{inputs: data.npz}}
train:
  duration: {steps}steps
  global_batch_size: {batch}
  logical_shards: 1
  optimizer: {{name: sgd, lr: {rate}, momentum: 0.9}}
"""


def noted_inputs():
    return (torch.randn(8, 6),)


CASES = dict(MODELS, noted=(Noted, noted_inputs, lambda inputs: torch.randint(0, 3, (8,)), 0.1))
TRIED = ("noted", "cnn", "mlp", "gpt2", "bert", "vit", "llama", "lstm")


def train(model, inputs, labels, rate):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = model(*inputs)
        nn.functional.cross_entropy(scores.flatten(0, -2), labels.flatten(), ignore_index=-100).backward()
        optimizer.step()


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"lockstep {words[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def distance(mine, theirs):
    """Relative to the tensor's size; parts that training hardly moved are not blown up."""
    mine, theirs = mine.double(), theirs.double()
    return ((mine - theirs).norm() / (theirs.norm() + 1e-3)).item()


def check(program, folder, name):
    make, make_inputs, make_labels, rate = CASES[name]
    torch.manual_seed(1)
    model = make().train()
    inputs = make_inputs()
    labels = make_labels(inputs)
    theirs = copy.deepcopy(model)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    lockstep.export(model, inputs, folder / "m.onnx")
    for key, value in model.state_dict().items():
        assert torch.equal(before[key], value), f"the export changed {key}"

    names = [entry.name for entry in __import__("onnx").load(folder / "m.onnx").graph.input]
    numpy.savez(folder / "data.npz", labels=labels.numpy(), **{n: x.numpy() for n, x in zip(names, inputs)})
    (folder / "job.yaml").write_text(JOB.format(steps=STEPS, batch=len(labels), rate=rate))
    run(program, "run", folder / "job.yaml", "--workers", 1, "--dir", folder / "job")
    train(theirs, inputs, labels, rate)

    mine = make().train()
    lockstep.load(folder / "job", mine)  # strictly
    state = theirs.state_dict()
    worst = max((distance(value, state[key]), key) for key, value in mine.state_dict().items())
    assert worst[0] < 1e-4, f"{worst[1]} is {worst[0]:.1e} away"
    for key, parameter in mine.named_parameters():
        if not dict(theirs.named_parameters())[key].requires_grad:
            assert torch.equal(parameter, before[key]), f"{key} is frozen and moved"

    run(program, "predict", folder / "job", "-o", folder / "scores.npy")
    with torch.no_grad():
        expected = mine.eval()(*inputs)
    scores = torch.from_numpy(numpy.load(folder / "scores.npy"))
    assert scores.shape == expected.shape, f"predictions of {tuple(scores.shape)}"
    assert distance(scores, expected) < 1e-4, f"predictions are {distance(scores, expected):.1e} away"
    rows = lockstep.stats(folder / "job")
    assert len(rows) == 1 and rows[0]["steps"] == STEPS and rows[0]["job_step"] == STEPS, rows
    return worst


def check_smoothing(folder):
    """PyTorch's exporter leaves label smoothing out of the file, so such a model is refused."""
    class Smoothed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(6, 4)
            self.loss = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

        def forward(self, x, labels):
            return self.loss(self.layer(x), labels)

    path = folder / "smoothed.onnx"
    try:
        lockstep.export(Smoothed().train(), (torch.zeros(4, 6), torch.zeros(4, dtype=torch.int64)), path)
    except ValueError as error:
        assert "label_smoothing" in str(error) and not path.exists(), error
        return
    raise AssertionError("a loss with label smoothing was exported without it")


def main():
    warnings.filterwarnings("ignore")
    program, target = sys.argv[1], pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    check_smoothing(target)
    passed, failed = 1, 0
    for name in sys.argv[3:] or TRIED:
        folder = target / name
        folder.mkdir(parents=True)
        try:
            away, tensor = check(program, folder, name)
            print(f"{name}: at most {away:.1e} from PyTorch ({tensor})", flush=True)
            passed += 1
        except Exception as error:
            print(f"{name}: FAILED: {error}", flush=True)
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
