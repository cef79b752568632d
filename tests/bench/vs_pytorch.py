"""Trains the same models with PyTorch and with step_bench, in turns, and prints the ratios; see vs_pytorch.sh.

Three processes per model (step_bench, PyTorch eager, PyTorch compiled) live side by side and wait; one at a time trains
for a few seconds, in turns, and reports the median of its steps. Ratios are taken round by round, over the faster of the
two of PyTorch, and the median of the rounds is printed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def models():
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
            self.conv2 = nn.Conv2d(6, 16, 5)
            self.fc1 = nn.Linear(400, 120)
            self.fc2 = nn.Linear(120, 84)
            self.fc3 = nn.Linear(84, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
            return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.shortcut = None
            if stride != 1 or before != width:
                self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    class ResNet18(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            blocks, before = [], 64
            for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
                blocks += [Block(before, width, stride), Block(width, width, 1)]
                before = width
            self.blocks = nn.Sequential(*blocks)
            self.fc = nn.Linear(512, 10)

        def forward(self, x):
            x = self.blocks(F.relu(self.bn1(self.conv1(x))))
            return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.ln_1 = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)
            self.ln_2 = nn.LayerNorm(width)
            self.fc = nn.Linear(width, 4 * width)
            self.out = nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.ln_1(x)).split(c, dim=2)
            q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self, layers, width, heads, length, vocabulary):
            super().__init__()
            self.wte = nn.Embedding(vocabulary, width)
            self.wpe = nn.Embedding(length, width)
            self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
            self.ln_f = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=0.02)

        def forward(self, tokens):
            x = self.wte(tokens) + self.wpe.weight
            for layer in self.layers:
                x = layer(x)
            return self.head(self.ln_f(x))

    class UNet(nn.Module):
        """Segmentation by pixel, with a way around the middle."""

        def __init__(self):
            super().__init__()
            self.down1 = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.SiLU())
            self.down2 = nn.Sequential(nn.Conv2d(24, 48, 3, 2, padding=1), nn.GroupNorm(4, 48), nn.SiLU())
            self.middle = nn.Sequential(nn.Conv2d(48, 48, 3, padding=1), nn.GroupNorm(4, 48), nn.SiLU())
            self.up = nn.Upsample(scale_factor=2, mode="bilinear")
            self.last = nn.Conv2d(72, 21, 3, padding=1)

        def forward(self, x):
            a = self.down1(x)
            return self.last(torch.cat([a, self.up(self.middle(self.down2(a)))], 1))

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(256, 64)
            self.lstm = nn.LSTM(64, 128, batch_first=True)
            self.head = nn.Linear(128, 256)

        def forward(self, tokens):
            return self.head(self.lstm(self.table(tokens))[0])

    class Encoder(nn.Module):
        """BERT's layers, for text."""

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(256, 192)
            layer = nn.TransformerEncoderLayer(192, 4, 768, dropout=0.1, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = nn.Linear(192, 256)

        def forward(self, tokens):
            return self.head(self.layers(self.table(tokens)))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.2),
                                        nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 10))

        def forward(self, x):
            return self.layers(x)

    def vision(name, **arguments):
        def make():
            import torchvision
            return getattr(torchvision.models, name)(num_classes=10, **arguments)
        return make

    def image(channels, side):
        return lambda batch: (torch.randn(batch, channels, side, side), torch.randint(0, 10, (batch,)))

    def text(length):
        return lambda batch: (torch.randint(0, 256, (batch, length)), torch.randint(0, 256, (batch, length)))

    return {
        "lenet": (LeNet, image(1, 28), 64),
        "resnet18": (ResNet18, image(3, 32), 32),
        "gpt4x128": (lambda: GPT(4, 128, 4, 128, 256), text(128), 16),
        "gpt6x384": (lambda: GPT(6, 384, 6, 256, 256), text(256), 4),
        "mlp": (Mlp, image(3, 32), 128),
        "vgg11": (vision("vgg11_bn"), image(3, 64), 8),
        "mobilenet": (vision("mobilenet_v2"), image(3, 64), 16),
        "convnext": (vision("convnext_tiny"), image(3, 64), 8),
        "densenet": (vision("densenet121"), image(3, 64), 8),
        "vit": (vision("VisionTransformer", image_size=64, patch_size=8, num_layers=4, num_heads=4, hidden_dim=192,
                       mlp_dim=768), image(3, 64), 16),
        "unet": (UNet, lambda batch: (torch.randn(batch, 3, 64, 64), torch.randint(0, 21, (batch, 64, 64))), 8),
        "lstm": (Lstm, text(32), 32),
        "encoder": (Encoder, text(64), 16),
    }


def is_text(name):
    return name.startswith("gpt") or name in ("lstm", "encoder")


def train(arguments):
    """A process of PyTorch: for each line on stdin, trains so many seconds and reports."""
    import torch

    def kib(what):
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(what))

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    make, data, batch = models()[arguments.train]
    before = kib("VmRSS:")
    model = make().train()
    inputs, labels = data(batch)
    adamw = is_text(arguments.train)
    if adamw:
        update = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    else:
        update = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)

    def loss_of(x, y):
        scores = model(x)
        if is_text(arguments.train):
            scores, y = scores.flatten(0, -2), y.flatten()
        return torch.nn.functional.cross_entropy(scores, y)

    if arguments.compiled:
        loss_of = torch.compile(loss_of)
    for line in sys.stdin:
        steps, start = [], time.perf_counter()
        while not steps or time.perf_counter() - start < float(line):
            begin = time.perf_counter()
            update.zero_grad()
            loss = loss_of(inputs, labels)
            loss.backward()
            update.step()
            loss.item()
            steps.append(time.perf_counter() - begin)
        print(json.dumps({"samples_per_second": batch / statistics.median(steps), "loss": loss.item(),
                          "peak_mib": (kib("VmHWM:") - before) / 1024}), flush=True)
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")  # from here on the peak is that of steps, not of compiling


def export(arguments):
    import torch
    make, data, batch = models()[arguments.export]
    torch.manual_seed(1)
    model = make().train()
    inputs, _ = data(batch)
    torch.onnx.export(model, (inputs,), arguments.to, optimize=False, verbose=False,
                      dynamic_shapes=({0: torch.export.Dim("batch")},))


def ours(arguments, name, directory):
    _, data, batch = models()[name]
    _, labels = data(1)
    command = [arguments.step_bench, "--batch", str(batch), "--threads", str(arguments.threads)]
    if name == "lenet":
        return command + ["--model", "lenet"]
    path = os.path.join(directory, name + ".onnx")
    subprocess.run([sys.executable, __file__, "--export", name, "--to", path], check=True, stdout=subprocess.DEVNULL)
    classes = "256" if is_text(name) else "21" if name == "unet" else "10"
    command += ["--model", path, "--classes", classes, "--vocabulary", "256"]
    if is_text(name):
        command += ["--adamw"]
    if labels.dim() > 1:
        command += ["--labels", ",".join(str(d) for d in labels.shape[1:])]
    return command


class Trainee:
    def __init__(self, command, threads):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)

    def run(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args[0]} ended early")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def compare(arguments, name):
    python = [sys.executable, __file__, "--train", name, "--threads", str(arguments.threads)]
    trainees = [Trainee(ours(arguments, name, arguments.directory), arguments.threads),
                Trainee(python, arguments.threads), Trainee(python + ["--compiled"], arguments.threads)]
    for trainee in trainees:
        trainee.run(1.0)  # warms up, compiles
        trainee.run(0.2)
    rounds = [[trainee.run(arguments.seconds) for trainee in trainees] for _ in range(arguments.rounds)]
    for trainee in trainees:
        trainee.end()
    speed = [[result["samples_per_second"] for result in results] for results in rounds]
    last = rounds[-1]
    middle = statistics.median
    return {
        "model": name,
        "threads": arguments.threads,
        "instruction_set": last[0]["instruction_set"],
        "over_better": round(middle(s[0] / max(s[1:]) for s in speed), 3),
        "over_eager": round(middle(s[0] / s[1] for s in speed), 3),
        "over_compiled": round(middle(s[0] / s[2] for s in speed), 3),
        "memory": round(last[0]["peak_mib"] / min(result["peak_mib"] for result in last[1:]), 3),
        "products_share": middle(results[0]["products_share"] for results in rounds),
        "samples_per_second": [round(middle(s[i] for s in speed), 2) for i in range(3)],
        "peak_mib": [round(result["peak_mib"], 1) for result in last],
        "loss": [round(result["loss"], 4) for result in last],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--export")
    parser.add_argument("--to")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--step-bench")
    parser.add_argument("--directory")
    parser.add_argument("--models", default="lenet,resnet18,gpt4x128,gpt6x384")
    arguments = parser.parse_args()
    if arguments.train:
        return train(arguments)
    if arguments.export:
        return export(arguments)
    for name in arguments.models.split(","):
        print(json.dumps(compare(arguments, name)), flush=True)


if __name__ == "__main__":
    main()
