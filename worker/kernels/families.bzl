"""The families of kernels: which sources each has for which device. A new family is one line here.

A family is a folder of worker/kernels. Its sources are compiled by the devices: reference.cc once, cpu.cc once per
instruction set, cuda.cc by nvcc and for host execution, dnnl.cc with oneDNN. Its headers are the target that is named
as the folder.
"""

load("//bazel:lockstep.bzl", "ls_library")

_FAMILIES = {
    "activation": ["cpu.cc", "cuda.cc", "reference.cc"],
    "arithmetic": ["cpu.cc", "cpu_integers.cc", "cuda.cc", "reference.cc"],
    "attention": ["cpu.cc", "cuda.cc", "cuda_statistics.cc", "reference.cc"],
    "batch_norm": ["cpu.cc", "cpu_blocked.cc", "cpu_columns.cc", "cuda.cc", "reference.cc"],
    "convolution": ["cpu.cc", "cuda.cc", "dnnl.cc", "dnnl_gradient_parts.cc", "reference.cc"],
    "einsum": ["cuda.cc", "reference.cc"],
    "elementwise": ["cpu.cc", "cpu_math.cc", "cuda.cc", "reference.cc", "reference_math.cc"],
    "indexing": ["cpu.cc", "cuda.cc", "reference.cc"],
    "logic": ["cpu.cc", "cuda.cc", "reference.cc"],
    "loss": ["cpu.cc", "cuda.cc", "cuda_pointwise.cc", "reference.cc"],
    "movement": ["cpu.cc", "cpu_blocks.cc", "cpu_gather.cc", "cuda.cc", "reference.cc"],
    "normalisation": ["cpu.cc", "cpu_group_norm.cc", "cpu_lp_norm.cc", "cuda.cc", "cuda_group_norm.cc", "reference.cc"],
    "padding": ["cpu.cc", "cuda.cc"],
    "placement": ["cpu.cc", "cuda.cc", "reference.cc"],
    "pooling": ["cpu.cc", "cuda.cc", "reference.cc"],
    "power": ["cpu.cc", "cuda.cc", "reference.cc"],
    "product": ["cuda.cc", "dnnl.cc", "reference.cc"],
    "random": ["cpu.cc", "cuda.cc", "reference.cc"],
    "ranking": ["cpu.cc", "cuda.cc", "reference.cc"],
    "reduction": ["cpu.cc", "cpu_gradient.cc", "cuda.cc", "cuda_gradient.cc", "reference.cc", "reference_integer.cc"],
    "resize": ["cpu.cc", "cuda.cc", "reference.cc"],
    "softmax": ["cpu.cc", "cpu_planes.cc", "cuda.cc", "reference.cc"],
}

def kernel_sources(device):
    """Labels of the sources for `device`: "reference", "cpu", "cuda" or "dnnl"."""
    return ["//worker/kernels/%s:%s" % (family, source) for family in sorted(_FAMILIES) for source in _FAMILIES[family] if _device(source) == device]

def _device(source):
    return source[:-len(".cc")].split("_")[0]

def kernel_family(deps = []):
    """The targets of one family's folder: its sources for the devices, and a library of its headers with `deps`."""
    name = native.package_name().split("/")[-1]
    sources = native.glob(["*.cc"], exclude = ["*_test.cc"])
    if sorted(sources) != sorted(_FAMILIES.get(name, [])):
        fail("worker/kernels/families.bzl lists other sources of %s than its folder has: %s" % (name, sources))
    native.exports_files(sources)
    ls_library(
        name = name,
        hdrs = native.glob(["*.h"]),
        visibility = ["//worker/device:__subpackages__", "//worker/kernels:__subpackages__", "//worker/profile:__pkg__"],
        deps = deps,
    )
