"""The models whose exports Lockstep has to train: small ones, written with the ops that today's PyTorch code uses.

Every class takes its sizes from its defaults; `MODELS` gives for each name how to make it, its inputs and its labels.
Dropout is 0 wherever a layer has it: its random numbers are not comparable.
"""
import math

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn import functional as F


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


class Decides(nn.Module):
    """Branches by torch.cond: one that the data decide, with layers of its own in each, and one that changes sides while
    the model is trained."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 16)
        self.warm = nn.Linear(16, 16)
        self.cold = nn.Linear(16, 16)
        self.scale = nn.Parameter(torch.ones(16))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        h = torch.tanh(self.fc1(x.flatten(1)))
        h = torch.cond(x.mean() > 0.0, lambda a: torch.relu(self.warm(a)), lambda a: torch.tanh(self.cold(a)), (h,))
        y = self.head(h)
        return torch.cond((y * y).mean() < 0.22, lambda a, b: a + (b * self.scale)[:, :5],
                          lambda a, b: torch.sqrt(b.abs() + 0.1)[:, :5] + a * self.scale[:5], (y, h))


def repeat(goes_on, further, state):
    """while_loop for the exporter, else a plain loop: where no trip is taken, PyTorch 2.15's gradient of while_loop is that
    of one trip."""
    if torch.compiler.is_exporting():
        return while_loop(goes_on, further, state)
    while goes_on(*state):
        state = further(*state)
    return state


class Loops(nn.Module):
    """A scan over a sequence, a while_loop that counts, and one that counts and looks at the data, which end it earlier
    while the model is trained."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(8, 12)
        self.mix = nn.Linear(12, 12, bias=False)
        self.refine = nn.Linear(12, 12)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        def step(h, e):
            h = torch.tanh(e + self.mix(h))
            return h, h * h

        def further(i, h):
            return i + 1, h + 0.5 * torch.tanh(self.refine(h))

        e = self.enter(x[:, 0])
        last, squares = scan(step, torch.zeros_like(e[:, 0]), e.transpose(0, 1))
        h = last + squares.mean(0)
        _, h = repeat(lambda i, h: i < 3, further, (torch.tensor(0), h))
        _, h = repeat(lambda i, h: (i < 4) & (h.abs().mean() < 1.12), further, (torch.tensor(0), h))
        return self.head(h)


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
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(dim=1))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet18(nn.Module):
    """ResNet-18 with the stem for small images, a quarter as wide."""

    def __init__(self, width=16, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        layers, inputs = [], width
        for stage in range(4):
            outputs = width << stage
            layers.append(nn.Sequential(BasicBlock(inputs, outputs, 1 if stage == 0 else 2),
                                        BasicBlock(outputs, outputs, 1)))
            inputs = outputs
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        self.shortcut = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True), nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return x + self.conv(x) if self.shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    """Depthwise convolutions, ReLU6, dropout of probability 0."""

    def __init__(self):
        super().__init__()
        blocks = [InvertedResidual(8, 8, 1, 2), InvertedResidual(8, 12, 2, 3), InvertedResidual(12, 12, 1, 3)]
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True),
                                      *blocks, nn.Conv2d(12, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6())
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(24, 10))

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class Vgg11Bn(nn.Module):
    """VGG11 with batch normalisation, an eighth as wide."""

    def __init__(self):
        super().__init__()
        layers, inputs = [], 3
        for step in (8, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M"):
            if step == "M":
                layers.append(nn.MaxPool2d(2, 2))
                continue
            layers += [nn.Conv2d(inputs, step, 3, padding=1), nn.BatchNorm2d(step), nn.ReLU(inplace=True)]
            inputs = step
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Sequential(nn.Linear(64, 32), nn.ReLU(True), nn.Dropout(0.0), nn.Linear(32, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_out = nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (m.view(b, t, self.heads, c // self.heads).transpose(1, 2) for m in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2: learned positions, tied token embedding and head, tanh GELU, fused causal attention."""

    def __init__(self, layers=4, heads=4, width=128, context=32, vocabulary=256):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.initialise)
        self.wte.weight = self.lm_head.weight

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.wte(ids) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.intermediate, self.reduce = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = (layer(x).view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.output(y.transpose(1, 2).reshape(b, t, c)))
        return self.norm2(x + self.reduce(F.gelu(self.intermediate(x))))


class Bert(nn.Module):
    """A BERT-like classifier of three inputs: tokens, attention mask, segments."""

    def __init__(self, layers=2, heads=4, width=64, context=24, vocabulary=200, classes=5):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width, padding_idx=0)
        self.position_embeddings = nn.Embedding(context, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.register_buffer("position_ids", torch.arange(context).expand((1, -1)))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, input_ids, attention_mask, token_type_ids):
        positions = self.position_ids[:, : input_ids.shape[1]]
        x = self.word_embeddings(input_ids) + self.position_embeddings(positions)
        x = self.norm(x + self.token_type_embeddings(token_type_ids))
        mask = attention_mask[:, None, None, :].to(x.dtype)
        mask = (1.0 - mask) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


class Vit(nn.Module):
    """A vision transformer of nn.TransformerEncoderLayer, with a class token."""

    def __init__(self, image=16, patch=4, width=48, heads=4, layers=2, classes=10):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embedding = nn.Parameter(torch.empty(1, (image // patch) ** 2 + 1, width).normal_(std=0.02))
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embedding
        return self.head(self.encoder(x)[:, 0])


class RmsNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        self.gate_proj = nn.Linear(width, 2 * width, bias=False)
        self.up_proj = nn.Linear(width, 2 * width, bias=False)
        self.down_proj = nn.Linear(2 * width, width, bias=False)
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(width), RmsNorm(width)

    @staticmethod
    def rotate(x, cos, sin):
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * cos + turned * sin

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        h = self.input_layernorm(x)
        q = self.rotate(self.q_proj(h).view(b, t, self.heads, self.size).transpose(1, 2), cos, sin)
        k = self.rotate(self.k_proj(h).view(b, t, self.kv_heads, self.size).transpose(1, 2), cos, sin)
        v = self.v_proj(h).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        k, v = (m[:, :, None].expand(b, self.kv_heads, self.heads // self.kv_heads, t, self.size)
                .reshape(b, self.heads, t, self.size) for m in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(y.transpose(1, 2).reshape(b, t, c))
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Llama(nn.Module):
    """Grouped-query attention, rotary positions from a buffer, RMS norm, gated SiLU."""

    def __init__(self, layers=2, heads=4, kv_heads=2, width=64, vocabulary=200):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, kv_heads) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        inv_freq = 1.0 / (10000 ** (torch.arange(0, size, 2).float() / size))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        positions = torch.arange(ids.shape[1], device=ids.device)[None, :, None].float()
        angles = positions * self.inv_freq[None, None, :]
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        return self.lm_head(self.norm(x))


class TransformerEncoder(nn.Module):
    """nn.TransformerEncoder as it comes: post-norm, ReLU, sinusoidal positions in a buffer."""

    def __init__(self, width=32, heads=4, layers=2, context=20, vocabulary=100, classes=5):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        position = torch.arange(context).float()[:, None]
        rates = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
        table = torch.zeros(context, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rates), torch.cos(position * rates)
        self.register_buffer("table", table)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decoder = nn.Linear(width, classes)

    def forward(self, ids):
        x = self.embedding(ids) * math.sqrt(32) + self.table[: ids.shape[1]]
        return self.decoder(self.encoder(x).mean(dim=1))


class Lstm(nn.Module):
    """Two bidirectional LSTM layers over embedded tokens, the last step classified."""

    def __init__(self, width=16, hidden=24, vocabulary=100, classes=5):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, classes)

    def forward(self, ids):
        x, _ = self.lstm(self.embedding(ids))
        return self.fc(x[:, -1])


class Sampled(nn.Module):
    """A spatial transformer whose grid is learned, with every padding and interpolation, and resizing by cubics."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, padding=1)
        self.where = nn.Linear(144, 6)
        nn.init.normal_(self.where.weight, std=0.1)
        self.where.bias.data.copy_(torch.tensor([1.2, 0.2, 0.1, -0.3, 1.1, 0.2]))
        self.head = nn.Linear(3 * 70, 5)

    def forward(self, x):
        theta = self.where(x.flatten(1) / 12).view(-1, 2, 3)
        grid = nn.functional.affine_grid(theta, (x.shape[0], 3, 10, 7), align_corners=False)
        h = self.conv(x)
        y = nn.functional.grid_sample(h, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        y = y + nn.functional.grid_sample(h, grid, mode="bicubic", padding_mode="reflection", align_corners=True)
        y = y + nn.functional.grid_sample(h, grid, mode="bilinear", padding_mode="border", align_corners=True)
        z = nn.functional.interpolate(h, size=(10, 7), mode="bicubic", align_corners=False)
        z = z + nn.functional.interpolate(h, size=(10, 7), mode="bilinear", align_corners=False, antialias=True)
        return self.head(torch.tanh(y + z).flatten(1))


class Signal(nn.Module):
    """Spectra of learned windows, norms across channels, pooling by powers, and blocks added up."""

    def __init__(self):
        super().__init__()
        self.window = nn.Parameter(torch.hann_window(16) + 0.1)
        self.filters = nn.Conv1d(9, 8, 3, padding=1)
        self.norm = nn.LocalResponseNorm(3, alpha=0.1, beta=0.75, k=2.0)
        self.pool = nn.LPPool1d(2, kernel_size=3, stride=2)
        self.blocks = nn.Linear(24, 12)
        self.head = nn.Linear(26, 5)

    def forward(self, x):
        spectrum = torch.stft(x[:, 0], 16, hop_length=4, window=self.window, center=False, onesided=True,
                              return_complex=True)
        power = torch.log1p(torch.view_as_real(spectrum).square().sum(-1))  # [batch, 9, 13]
        h = self.pool(self.norm(torch.relu(self.filters(power)) + 0.1))  # [batch, 8, 6]
        h = self.blocks(h.reshape(h.shape[0], 2, 24)).reshape(h.shape[0], 4, 6)
        h = nn.functional.fold(h, output_size=(3, 4), kernel_size=(2, 2), stride=1)  # [batch, 1, 3, 4]
        parts = torch.view_as_real(torch.fft.rfft(h.flatten(1)))  # [batch, 7, 2]
        return self.head(torch.cat([h.flatten(1), parts.flatten(1)], dim=1))


def images(batch, *shape):
    return (torch.randn(batch, *shape),)


def tokens(batch, length, vocabulary):
    return (torch.randint(0, vocabulary, (batch, length)),)


def bert_inputs(batch, length, vocabulary):
    lengths = torch.randint(length // 2, length + 1, (batch, 1))
    mask = (torch.arange(length)[None] < lengths).long()
    segments = (torch.arange(length)[None] >= lengths // 2).long() * mask
    return (torch.randint(1, vocabulary, (batch, length)) * mask, mask, segments)


def classes(count):
    return lambda inputs: torch.randint(0, count, (inputs[0].shape[0],))


def next_tokens(inputs):
    """The token that follows; the last has none to predict."""
    labels = torch.roll(inputs[0], -1, dims=1)
    labels[:, -1] = -100
    return labels


# name: (class, inputs, labels, learning rate)
class Quantized(nn.Module):
    """Quantisation-aware: activations by one scale, weights by one per row; some of the numbers are cut off."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(36, 24)
        self.second = nn.Linear(24, 5)
        self.register_buffer("scales", torch.linspace(0.002, 0.0012, 24))
        self.register_buffer("zeros", torch.zeros(24, dtype=torch.int32))

    def forward(self, x):
        x = torch.fake_quantize_per_tensor_affine(x.flatten(1), 0.01, 128, 0, 255)
        weight = torch.fake_quantize_per_channel_affine(self.first.weight, self.scales, self.zeros, 0, -128, 127)
        hidden = torch.relu(nn.functional.linear(x, weight, self.first.bias))
        return self.second(torch.fake_quantize_per_tensor_affine(hidden, 0.005, 0, 0, 127))


MODELS = {
    "cnn": (Cnn, lambda: images(32, 1, 12, 12), classes(5), 0.05),
    "mlp": (Mlp, lambda: images(32, 1, 6, 6), classes(5), 0.05),
    "decides": (Decides, lambda: images(32, 1, 6, 6), classes(5), 0.05),
    "loops": (Loops, lambda: images(32, 1, 7, 8), classes(5), 0.1),
    "attention": (Attention, lambda: images(32, 1, 12, 12), classes(5), 0.05),
    "resnet18": (ResNet18, lambda: images(8, 3, 32, 32), classes(10), 0.002),
    "mobilenetv2": (MobileNetV2, lambda: images(8, 3, 24, 24), classes(10), 0.02),
    "vgg11_bn": (Vgg11Bn, lambda: images(8, 3, 32, 32), classes(10), 0.01),
    "gpt2": (Gpt2, lambda: tokens(4, 32, 256), next_tokens, 0.05),
    "bert": (Bert, lambda: bert_inputs(8, 24, 200), classes(5), 0.01),
    "vit": (Vit, lambda: images(8, 3, 16, 16), classes(10), 0.02),
    "llama": (Llama, lambda: tokens(4, 24, 200), next_tokens, 0.05),
    "llama_opset23": (Llama, lambda: tokens(4, 24, 200), next_tokens, 0.05),
    "encoder": (TransformerEncoder, lambda: tokens(8, 20, 100), classes(5), 0.02),
    "lstm": (Lstm, lambda: tokens(8, 12, 100), classes(5), 0.1),
    "sampled": (Sampled, lambda: images(8, 1, 12, 12), classes(5), 0.002),
    "quantized": (Quantized, lambda: images(32, 1, 6, 6), classes(5), 0.05),
    "signal": (Signal, lambda: images(8, 1, 64), classes(5), 0.05),
}
