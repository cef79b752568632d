"""Makes images/: a folder of small images of many kinds, and what torchvision reads of it.

images/folder/CLASS/... are the files; images/cover.npy, resized.npy, gray.npy and labels.npy what ImageFolder gives with
Pillow and torchvision, regions.npy parts of one of them. Run: python3 images.py (Pillow 12.0 and torchvision 0.29 made what is here; Pillow 13 scales columns
first where that is faster, and rounds some values to the neighbour).
"""
import pathlib
import shutil

import numpy
from PIL import Image
from torchvision import datasets, transforms

HERE = pathlib.Path(__file__).parent / "images"
SIZE = [12, 10]
REGIONS = [(0, 0, 23, 17), (3, 5, 7, 9), (22, 16, 1, 1), (2, 0, 20, 4), (11, 1, 12, 16)]  # top, left, height, width


def picture(height, width, seed):
    """Smooth colours with an edge, so that scaling and sampling show."""
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float64)
    waves = [numpy.sin(x / (3 + c) + seed) + numpy.cos(y / (4 + c) - seed) for c in range(3)]
    values = numpy.stack(waves, axis=-1) * 60 + 128
    values[y > x * height / width] += 25
    return Image.fromarray(values.clip(0, 255).astype(numpy.uint8))


def covering(height, width):
    """Scales until the size is covered, and takes the centre."""

    def scaled(image):
        w, h = image.size
        if w * height <= h * width:
            size = (width * h // w, width)
        else:
            size = (height, height * w // h)
        return transforms.CenterCrop([height, width])(transforms.Resize(size)(image))

    return scaled


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    folder = HERE / "folder"
    for name in ["B", "a_b", "c10/deeper", "c9"]:
        (folder / name).mkdir(parents=True)
    picture(30, 40, 0).save(folder / "B/plain.jpg", quality=90)
    picture(33, 21, 1).save(folder / "B/progressive.JPEG", quality=80, progressive=True)
    picture(16, 16, 2).convert("L").save(folder / "B/gray.jpg", quality=85)
    picture(23, 17, 3).save(folder / "a_b/colours.png")
    picture(25, 50, 4).quantize(16).save(folder / "a_b/palette.png")
    picture(9, 8, 5).save(folder / "a_b/small.png")
    rgba = picture(20, 30, 6).convert("RGBA")
    rgba.putalpha(Image.fromarray(numpy.linspace(0, 255, 600).reshape(20, 30).astype(numpy.uint8)))
    rgba.save(folder / "c10/transparent.png")
    picture(41, 13, 7).convert("LA").save(folder / "c10/deeper/gray_alpha.png")
    picture(14, 60, 8).convert("1").save(folder / "c9/bits.png")
    (folder / "c9/notes.txt").write_text("Not an image.\n")

    def read(transform):
        return numpy.stack([numpy.asarray(image).reshape(*SIZE, -1).transpose(2, 0, 1)
                            for image, _ in datasets.ImageFolder(folder, transform)])

    numpy.save(HERE / "cover.npy", read(covering(*SIZE)))
    numpy.save(HERE / "resized.npy", read(transforms.Compose([transforms.Resize(15), transforms.CenterCrop(SIZE)])))
    numpy.save(HERE / "gray.npy", read(transforms.Compose([transforms.Grayscale(), covering(*SIZE)])))
    colours = Image.open(folder / "a_b/colours.png")
    parts = [transforms.functional.resized_crop(colours, *region, SIZE) for region in REGIONS]
    numpy.save(HERE / "regions.npy", numpy.stack([numpy.asarray(part).transpose(2, 0, 1) for part in parts]))
    data = datasets.ImageFolder(folder)
    numpy.save(HERE / "labels.npy", numpy.array(data.targets, dtype=numpy.int64))
    (folder / "c9/.hidden.png").write_bytes(b"What torchvision would stumble over.\n")
    print([str(pathlib.Path(path).relative_to(folder)) for path, _ in data.samples])


if __name__ == "__main__":
    main()
