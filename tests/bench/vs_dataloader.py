"""The other side of vs_dataloader.sh: makes the data sets, runs both in turns, prints the ratios."""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

import numpy
import torch
from PIL import Image
from torchvision import datasets, transforms

EPOCHS_IN_ALL = 5
CROPS = "  augment: {resized_crop: [0.08, 1], flip: true}\n  image_threads: 1\n"
AUGMENT = "  augment: {flip: true, crop_padding: 4}\n"
JOB = """name: reader
model: {{builtin: {{name: resnet18, classes: 10}}, loss: softmax_cross_entropy}}
data:
  train: {train}
  normalize: {{divide_by: 255, mean: {mean}, std: {std}}}
{augment}train: {{duration: 1ep, global_batch_size: {batch}, logical_shards: 1, optimizer: {{lr: 0.1}}}}
"""


class Arrays(torch.utils.data.Dataset):
    """Bytes in memory, made into floats when they are asked for."""

    def __init__(self, images, labels, transform):
        self.images, self.labels, self.transform = torch.from_numpy(images), labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.transform(self.images[i].float() / 255), int(self.labels[i])


def write_images(folder, count, size, kind):
    random = numpy.random.default_rng(1)
    for i in range(count):
        path = folder / f"{i % 10}" / f"{i}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        small = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=numpy.uint8))
        small.resize((size, size), Image.BICUBIC).save(path, **({"quality": 90} if kind == "jpg" else {}))


def cases(directory):
    """Name, the job, PyTorch's data set, the batch."""
    random = numpy.random.default_rng(0)
    images = random.integers(0, 256, (20000, 3, 32, 32), dtype=numpy.uint8)
    labels = random.integers(0, 10, 20000)
    numpy.save(directory / "images.npy", images)
    numpy.save(directory / "labels.npy", labels)
    mean, std = [0.4914, 0.4822, 0.4465], [0.247, 0.2435, 0.2616]
    normal = transforms.Normalize(mean, std)
    arrays = f"{{inputs: {directory}/images.npy, labels: {directory}/labels.npy}}"
    changes = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()]
    yield "arrays 32x32", JOB.format(train=arrays, mean=mean, std=std, augment="", batch=128), Arrays(
        images, labels, normal), 128
    yield "arrays 32x32, moved and mirrored", JOB.format(
        train=arrays, mean=mean, std=std, augment=AUGMENT, batch=128), Arrays(
            images, labels, transforms.Compose([normal, *changes])), 128
    for name, count, size, kind in [("PNG 32x32", 5000, 32, "png"), ("JPEG 224x224", 600, 224, "jpg")]:
        folder = directory / kind
        write_images(folder, count, size, kind)
        steps = [transforms.RandomCrop(size, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normal]
        yield f"{name}, moved and mirrored", JOB.format(
            train=f"{{inputs: {folder}}}", mean=mean, std=std, augment=AUGMENT,
            batch=64), datasets.ImageFolder(folder, transforms.Compose(steps)), 64


    folder = directory / "photos"
    write_images(folder, 300, 448, "jpg")
    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normal]
    yield "JPEG 448x448 left in their files, parts of 224x224", JOB.format(
        train=f"{{inputs: {folder}, image_size: [224, 224], image_decode: step}}", mean=mean, std=std, augment=CROPS,
        batch=64), datasets.ImageFolder(folder, transforms.Compose(steps)), 64


def torch_rate(data, batch, epochs):
    loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, drop_last=True, num_workers=1,
                                         persistent_workers=True)
    for _ in loader:  # starts the process
        break
    begin = time.monotonic()
    read = sum(len(labels) for _ in range(epochs) for _, labels in loader)
    return read / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reader-bench", required=True)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, job, data, batch in cases(arguments.directory):
        path = arguments.directory / "job.yaml"
        path.write_text(job)
        ours, theirs, opened = [], [], []
        for _ in range(arguments.rounds):
            out = json.loads(subprocess.check_output([arguments.reader_bench, str(path), "--epochs",
                                                      str(arguments.epochs)]))
            ours.append(out["samples_per_second"])
            opened.append(out["open_seconds"])
            theirs.append(torch_rate(data, batch, arguments.epochs))
        rate, other, opening = (statistics.median(v) for v in (ours, theirs, opened))
        samples = EPOCHS_IN_ALL * len(data)
        print(json.dumps({"data": name, "samples_per_second": round(rate), "dataloader": round(other),
                          "ratio": round(rate / other, 2), "open_seconds": opening,
                          "five_epochs": round(samples / other / (opening + samples / rate), 2)}), flush=True)


if __name__ == "__main__":
    main()
