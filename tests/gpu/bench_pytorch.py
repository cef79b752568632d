"""One of bench.sh's models in PyTorch, on the same data shapes: prints one JSON object with the median of its steps.

A step is forward, backward and a fused update, timed with CUDA events; the copy of the batch to the GPU is part of it.
Exit 3 where torch or a GPU is missing.
"""
import argparse
import json
import statistics
import sys


def gpt2(torch):
    nn, F = torch.nn, torch.nn.functional
    layers, width, heads, length, vocabulary = 12, 768, 12, 1024, 50257

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.ln_1(x)).split(c, dim=2)
            q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.ln_f = nn.LayerNorm(width)
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=0.02)

        def forward(self, tokens):
            x = self.wte(tokens) + self.wpe.weight
            for layer in self.layers:
                x = layer(x)
            return F.linear(self.ln_f(x), self.wte.weight)  # tied, as the job's model

    def batch(size):
        return (torch.randint(0, vocabulary, (size, length)), torch.randint(0, vocabulary, (size, length)))

    return GPT(), batch, lambda p: torch.optim.AdamW(p, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)


def resnet50(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
            self.shortcut = None
            if stride != 1 or before != 4 * width:
                self.shortcut = nn.Sequential(nn.Conv2d(before, 4 * width, 1, stride, bias=False),
                                              nn.BatchNorm2d(4 * width))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
            return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    class ResNet50(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
            blocks, before = [], 64
            for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
                for i in range(count):
                    blocks.append(Block(before, width, stride if i == 0 else 1))
                    before = 4 * width
            self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(2048, 1000)

        def forward(self, x):
            x = self.blocks(F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1))
            return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    def batch(size):
        images = torch.rand(size, 3, 224, 224).contiguous(memory_format=torch.channels_last)
        return images, torch.randint(0, 1000, (size,))

    model = ResNet50().to(memory_format=torch.channels_last)
    return model, batch, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4, fused=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["gpt2", "resnet50"])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="autocast; attention is then flash attention")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"bench_pytorch.py: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("bench_pytorch.py: torch sees no GPU", file=sys.stderr)
        return 3
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.tf32
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    device = torch.device("cuda", arguments.gpu)
    torch.cuda.set_device(device)
    model, make_batch, make_update = {"gpt2": gpt2, "resnet50": resnet50}[arguments.model](torch)
    model = model.to(device).train()
    update = make_update(model.parameters())
    inputs, labels = (part.pin_memory() for part in make_batch(arguments.batch))

    def loss_of(x, y):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=arguments.bf16):
            return torch.nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())

    if arguments.compile:
        loss_of = torch.compile(loss_of)

    def step():
        update.zero_grad(set_to_none=True)
        loss = loss_of(inputs.to(device, non_blocking=True), labels.to(device, non_blocking=True))
        loss.backward()
        update.step()
        return loss

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(arguments.steps):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        loss = step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    median = statistics.median(times)
    print(json.dumps({
        "ms_per_step": round(median, 3),
        "samples_per_second": round(arguments.batch * 1000 / median, 2),
        "peak_mib": round(torch.cuda.max_memory_reserved() / 2**20, 1),
        "loss": round(loss.item(), 4),
        "torch": torch.__version__,
    }))
    return 0


if __name__ == "__main__":
    sys.exit(main())
