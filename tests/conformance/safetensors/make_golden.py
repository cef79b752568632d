"""Writes golden.safetensors with the reference implementation: python3 make_golden.py golden.safetensors

Needs safetensors 0.4.5 and numpy from PyPI. The test compares it byte for byte with what our writer makes of the same
tensors; element i of each has the value i modulo 100, booleans i modulo 2.
"""

import sys

import numpy
from safetensors.numpy import save_file

TENSORS = {
    "conv1.weight": ("float32", (2, 1, 3, 3)),
    "conv1.bias": ("float32", (2,)),
    "empty": ("float32", (0, 4)),
    "lockstep.step": ("int64", ()),
    "lockstep.exponent.conv1.weight": ("int32", ()),
    "half": ("float16", (3,)),
    "double": ("float64", (2,)),
    "mask": ("bool", (5,)),
    "bytes": ("uint8", (3,)),
    "signed": ("int8", (2,)),
    "short": ("int16", (2, 2)),
    "unsigned": ("uint64", (1,)),
    'odd "name"\\\n\u00fc\u20ac': ("uint32", (2,)),
}


def values(dtype, shape):
    count = int(numpy.prod(shape, dtype=numpy.int64))
    return (numpy.arange(count) % (2 if dtype == "bool" else 100)).astype(dtype).reshape(shape)


save_file({name: values(*spec) for name, spec in TENSORS.items()}, sys.argv[1], metadata={"format": "pt"})
