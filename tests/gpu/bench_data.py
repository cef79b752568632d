"""Writes what bench.sh's jobs read: random tokens, images and labels, the same ones every time.

Usage: bench_data.py DIR. Needs nothing but Python.
"""
import array
import os
import random
import struct
import sys

TOKENS = 1 << 20
VOCABULARY = 50257
IMAGES = 256
SIDE = 224
CLASSES = 1000


def npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    numbers = random.Random(1)
    tokens = array.array("H", (numbers.randrange(VOCABULARY) for _ in range(TOKENS)))
    labels = array.array("q", (numbers.randrange(CLASSES) for _ in range(IMAGES)))
    if sys.byteorder == "big":
        tokens.byteswap()
        labels.byteswap()
    with open(os.path.join(directory, "tokens.bin"), "wb") as file:
        file.write(struct.pack("<3i", 20240520, 1, TOKENS) + bytes(1012) + tokens.tobytes())
    npy(os.path.join(directory, "images.npy"), "|u1", (IMAGES, 3, SIDE, SIDE), numbers.randbytes(IMAGES * 3 * SIDE * SIDE))
    npy(os.path.join(directory, "labels.npy"), "<i8", (IMAGES,), labels.tobytes())


if __name__ == "__main__":
    main()
