"""Trains the built-in architectures in PyTorch, from weights that both sides make out of the same random numbers.

A development tool: the tests need no Python. Needs torch and numpy.

    python3 tests/conformance/pytorch/builtin_models.py tests/conformance/pytorch/builtin

Per model NAME.losses.txt: the loss of each step (one batch, every step takes all of it), then `name sum norm` of every
parameter and statistic at the end. Weights, inputs and labels come from common/random/random.h, written out here again:
element e of NAME is r(e) of RandomStream::For(SEED, StreamOfName(NAME)).
"""
import pathlib
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

STEPS = 6
BATCH = 8
SEED = 11
LABELS = 10


def philox(counter, key):
    """Philox4x32-10 of counters [n, 4] under one key."""
    words = [counter[:, i].astype(numpy.uint64) for i in range(4)]
    key = [numpy.uint64(k) for k in key]
    mask = numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        first = words[0] * numpy.uint64(0xD2511F53)
        second = words[2] * numpy.uint64(0xCD9E8D57)
        words = [(second >> numpy.uint64(32)) ^ words[1] ^ key[0], second & mask,
                 (first >> numpy.uint64(32)) ^ words[3] ^ key[1], first & mask]
        key = [(key[0] + numpy.uint64(0x9E3779B9)) & mask, (key[1] + numpy.uint64(0xBB67AE85)) & mask]
    return numpy.stack(words, axis=1)


def random_numbers(name, count):
    """The first `count` 32-bit numbers of the stream of a name."""
    stream = 0xCBF29CE484222325
    for byte in name.encode():
        stream = ((stream ^ byte) * 0x100000001B3) % 2**64
    mixed = philox(numpy.array([[stream % 2**32, stream >> 32, 1, 0]]), [SEED, 0])[0]
    blocks = (count + 3) // 4
    counters = numpy.zeros((blocks, 4), dtype=numpy.uint64)
    counters[:, 0] = numpy.arange(blocks)
    return philox(counters, [mixed[0] ^ mixed[2], mixed[1] ^ mixed[3]]).reshape(-1)[:count]


def symmetric(name, shape):
    count = int(numpy.prod(shape))
    numbers = (random_numbers(name, count) >> numpy.uint64(8)).astype(numpy.int64) - 2**23
    return torch.tensor((numbers.astype(numpy.float64) * 2.0**-23).astype(numpy.float32)).reshape(list(shape))


def choices(name, shape, limit):
    numbers = random_numbers(name, int(numpy.prod(shape))) % numpy.uint64(limit)
    return torch.tensor(numbers.astype(numpy.int64)).reshape(list(shape))


def fill(model):
    """Weights that are large enough for every part to matter."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = symmetric(name, parameter.shape)
            if parameter.dim() > 1:
                value *= float(numpy.float32(numpy.sqrt(3.0 / numpy.prod(parameter.shape[1:]))))
            else:
                value *= 0.25
                if name.endswith("weight"):
                    value += 1.0
            parameter.copy_(value)


class Block(nn.Module):
    """A residual block of torchvision's ResNet, basic or bottleneck."""

    def __init__(self, channels, width, stride, bottleneck):
        super().__init__()
        out = width * (4 if bottleneck else 1)
        self.bottleneck = bottleneck
        if bottleneck:
            self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
            self.conv3 = nn.Conv2d(width, out, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(out)
        else:
            self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.bottleneck:
            y = self.bn3(self.conv3(torch.relu(y)))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, blocks, bottleneck, small):
        super().__init__()
        self.small = small
        self.conv1 = nn.Conv2d(3, 64, 3 if small else 7, stride=1 if small else 2, padding=1 if small else 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                layers.append(Block(channels, 64 << stage, 2 if stage > 0 and i == 0 else 1, bottleneck))
                channels = (64 << stage) * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(channels, LABELS)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        if not self.small:
            x = functional.max_pool2d(x, 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


class Conv1D(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


def attention(q, k, v, heads, mask=None):
    b, t, c = q.shape
    q, k, v = (m.reshape(b, t, heads, c // heads).transpose(1, 2) for m in (q, k, v))
    scores = q @ k.transpose(-2, -1) / (c // heads) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, c)


class Gpt2(nn.Module):
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.ln_1 = nn.LayerNorm(width)
            self.attn = nn.Module()
            self.attn.c_attn = Conv1D(width, 3 * width)
            self.attn.c_proj = Conv1D(width, width)
            self.ln_2 = nn.LayerNorm(width)
            self.mlp = nn.Module()
            self.mlp.c_fc = Conv1D(width, 4 * width)
            self.mlp.c_proj = Conv1D(4 * width, width)

        def forward(self, x, mask):
            q, k, v = self.attn.c_attn(self.ln_1(x)).split(x.shape[2], dim=2)
            x = x + self.attn.c_proj(attention(q, k, v, self.heads, mask))
            return x + self.mlp.c_proj(functional.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh"))

    def __init__(self, layers=2, heads=4, width=32, context=24, vocabulary=65):
        super().__init__()
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(vocabulary, width)
        self.transformer.wpe = nn.Embedding(context, width)
        self.transformer.h = nn.ModuleList(self.Block(width, heads) for _ in range(layers))
        self.transformer.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        t = tokens.shape[1]
        mask = torch.ones(t, t, dtype=torch.bool).triu(1)
        x = self.transformer.wte(tokens) + self.transformer.wpe(torch.arange(t))
        for block in self.transformer.h:
            x = block(x, mask)
        return self.transformer.ln_f(x) @ self.transformer.wte.weight.T


class Bert(nn.Module):
    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.attention = nn.Module()
            setattr(self.attention, "self", nn.Module())
            inner = getattr(self.attention, "self")
            inner.query, inner.key, inner.value = (nn.Linear(width, width) for _ in range(3))
            self.attention.output = nn.Module()
            self.attention.output.dense = nn.Linear(width, width)
            self.attention.output.LayerNorm = nn.LayerNorm(width, eps=1e-12)
            self.intermediate = nn.Module()
            self.intermediate.dense = nn.Linear(width, 4 * width)
            self.output = nn.Module()
            self.output.dense = nn.Linear(4 * width, width)
            self.output.LayerNorm = nn.LayerNorm(width, eps=1e-12)

        def forward(self, x):
            inner = getattr(self.attention, "self")
            y = attention(inner.query(x), inner.key(x), inner.value(x), self.heads)
            x = self.attention.output.LayerNorm(x + self.attention.output.dense(y))
            return self.output.LayerNorm(x + self.output.dense(functional.gelu(self.intermediate.dense(x))))

    def __init__(self, layers=2, heads=4, width=32, context=24, vocabulary=65):
        super().__init__()
        self.bert = nn.Module()
        self.bert.embeddings = nn.Module()
        self.bert.embeddings.word_embeddings = nn.Embedding(vocabulary, width)
        self.bert.embeddings.position_embeddings = nn.Embedding(context, width)
        self.bert.embeddings.token_type_embeddings = nn.Embedding(2, width)
        self.bert.embeddings.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.bert.encoder = nn.Module()
        self.bert.encoder.layer = nn.ModuleList(self.Layer(width, heads) for _ in range(layers))
        self.bert.pooler = nn.Module()
        self.bert.pooler.dense = nn.Linear(width, width)
        self.classifier = nn.Linear(width, LABELS)

    def forward(self, tokens):
        embeddings = self.bert.embeddings
        x = embeddings.word_embeddings(tokens) + embeddings.token_type_embeddings(torch.zeros_like(tokens))
        x = embeddings.LayerNorm(x + embeddings.position_embeddings(torch.arange(tokens.shape[1])))
        for layer in self.bert.encoder.layer:
            x = layer(x)
        return self.classifier(torch.tanh(self.bert.pooler.dense(x[:, 0])))


class Vit(nn.Module):
    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.ln_1 = nn.LayerNorm(width, eps=1e-6)
            self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
            self.ln_2 = nn.LayerNorm(width, eps=1e-6)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Identity(), nn.Linear(4 * width, width))

        def forward(self, x):
            y = self.ln_1(x)
            x = x + self.self_attention(y, y, y, need_weights=False)[0]
            return x + self.mlp(self.ln_2(x))

    def __init__(self, layers=2, heads=4, width=32, image=16, patch=4):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.conv_proj = nn.Conv2d(3, width, patch, stride=patch)
        self.encoder = nn.Module()
        self.encoder.pos_embedding = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.encoder.layers = nn.Module()
        for i in range(layers):
            setattr(self.encoder.layers, f"encoder_layer_{i}", self.Layer(width, heads))
        self.encoder.ln = nn.LayerNorm(width, eps=1e-6)
        self.heads = nn.Module()
        self.heads.head = nn.Linear(width, LABELS)

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1) + self.encoder.pos_embedding
        for layer in self.encoder.layers.children():
            x = layer(x)
        return self.heads.head(self.encoder.ln(x)[:, 0])


IMAGES = (BATCH, 3, 48, 48)
# With the learning rate: deep networks in front of few samples amplify rounding, the deeper the more.
MODELS = {
    "resnet18": (lambda: ResNet((2, 2, 2, 2), False, False), IMAGES, 1e-5),
    "resnet18_small": (lambda: ResNet((2, 2, 2, 2), False, True), (BATCH, 3, 12, 12), 1e-5),
    "resnet34": (lambda: ResNet((3, 4, 6, 3), False, False), IMAGES, 2e-6),
    "resnet50": (lambda: ResNet((3, 4, 6, 3), True, False), IMAGES, 3e-8),
    "gpt2": (Gpt2, (BATCH, 16), 0.01),
    "bert": (Bert, (BATCH, 16), 0.01),
    "vit": (Vit, (BATCH, 3, 16, 16), 0.01),
}


def write(name, directory):
    make, shape, rate = MODELS[name]
    model = make().train()
    fill(model)
    inputs = choices("inputs", shape, 65) if len(shape) == 2 else symmetric("inputs", shape)
    classes = 65 if name == "gpt2" else LABELS
    labels = choices("labels", shape if name == "gpt2" else shape[:1], classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    lines = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs).reshape(-1, classes), labels.reshape(-1))
        loss.backward()
        optimizer.step()
        lines.append(f"{loss.item():.9g}")
    for key, value in model.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            lines.append(f"{key} {value.double().sum().item():.9g} {value.double().norm().item():.9g}")
    (directory / f"{name}.losses.txt").write_text("\n".join(lines) + "\n")
    print(name, *lines[:STEPS])


if __name__ == "__main__":
    torch.set_num_threads(1)
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in MODELS:
        write(each, target)
