"""Kernels, compiled by nvcc and for host execution."""

load("@cuda//:defs.bzl", "HAS_CUDA", "NVCC")
load("//bazel:joined_sources.bzl", "join")
load("//bazel:lockstep.bzl", "ls_library")

# Machine code for Hopper, and what the driver compiles for later GPUs when it loads the library; with
# --define=gpus=ampere likewise from Ampere on.
_HOPPER = ["-gencode=arch=compute_90,code=[sm_90,compute_90]"]
_AMPERE = ["-gencode=arch=compute_80,code=sm_80"]

# For sources that say which GPU is the oldest.
OLDEST_GPU = select({
    "//bazel:with_ampere": ["LS_OLDEST_GPU=8"],
    "//conditions:default": ["LS_OLDEST_GPU=9"],
})

_FLAGS = [
    "-x",
    "cu",
    "-std=c++20",
    # Of the code that launches kernels; nvcc optimises the kernels themselves by a flag of its own, to the utmost.
    "-O1",
    # As everywhere: no fused multiply-add unless written.
    "-fmad=false",
    "-Xcompiler=-fPIC,-g1,-ffp-contract=off,-Wall,-Wextra,-Werror,-Wno-missing-field-initializers",
    # Lambdas in kernels, and constexpr functions of the standard library.
    "--extended-lambda",
    "--expt-relaxed-constexpr",
    "-Werror=all-warnings",
    # Abseil's headers.
    "-diag-suppress=1394,1388,177",
]

# So many sources are compiled as one: of the seven to eighteen seconds that nvcc takes for one, five are for its headers.
_TOGETHER = 4

# For sources and tests with kernels, compiled for host execution: each load and store calls host execution's checker, by
# the calls that the compiler makes for ThreadSanitizer, and so does an index or an address that is wrong by its type.
# The sanitizer's name is not told: headers have other members where they see it.
HOST_CHECKS = select({
    "//bazel:with_sanitizer": [],
    "//conditions:default": [
        "-O1",  # takes a third less to compile
        "-fsanitize=thread,bounds,alignment",
        "-fno-sanitize-recover=bounds,alignment",
        "-U__SANITIZE_THREAD__",
        "--param=tsan-instrument-func-entry-exit=0",
    ],
})

def _cuda_objects_impl(ctx):
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = depset(transitive = [context.headers for context in contexts])
    folders = []
    for context in contexts:
        folders += ["-I" + folder for folder in context.includes.to_list() + context.quote_includes.to_list()]
        folders += ["-isystem=" + folder for folder in context.system_includes.to_list()]
    objects = []
    for joint in join(ctx, ctx.files.srcs, _TOGETHER):
        source = joint.source
        out = ctx.actions.declare_file(source.basename[:-len("cc")] + "o", sibling = source)
        arguments = ctx.actions.args()
        arguments.add_all(_FLAGS + ctx.attr.copts)
        arguments.add_all(folders, uniquify = True)
        arguments.add("-c")
        arguments.add(source)
        arguments.add("-o")
        arguments.add(out)
        ctx.actions.run(
            executable = NVCC,
            arguments = [arguments],
            inputs = depset([source] + joint.files, transitive = [headers]),
            outputs = [out],
            use_default_shell_env = True,
            mnemonic = "Nvcc",
            progress_message = "Compiling %s for GPUs" % source.short_path,
        )
        objects.append(out)
    return [DefaultInfo(files = depset(objects))]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

def _cuda_library(name, srcs, deps, visibility):
    _cuda_objects(
        name = name + "_objects",
        srcs = srcs,
        copts = select({
            "//bazel:with_ampere": _HOPPER + _AMPERE,
            "//conditions:default": _HOPPER,
        }),
        deps = deps + ["@cuda//:toolkit"],
    )
    native.cc_library(
        name = name,
        srcs = [":" + name + "_objects"],
        visibility = visibility,
        deps = deps + ["@cuda//:toolkit"],
        alwayslink = True,
    )

def ls_kernels(name, srcs, deps, visibility = ["//visibility:private"]):
    """Sources that hold kernels, twice: NAME_on_host for host execution, and NAME_by_nvcc where there is a toolkit.

    Both take neighbours in `srcs` as one (joined_sources.bzl), and are linked whole, since what uses kernels may stand in
    front of them.
    """
    ls_library(
        name = name + "_on_host",
        srcs = srcs,
        visibility = visibility,
        together = _TOGETHER,
        copts = HOST_CHECKS,
        deps = deps + ["//worker/device/cuda/runtime:runtime_on_host"],
        alwayslink = True,
    )
    if HAS_CUDA:
        _cuda_library(name + "_by_nvcc", srcs, deps, visibility)
