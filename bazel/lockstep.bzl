"""Macros of the build: libraries and programs with compiled headers, tests on Catch2, protos by the packaged compiler."""

# lld links a test in a third of the time that gold takes.
TEST_LINKOPTS = ["-fuse-ld=lld"]

# How tests are compiled: their own speed matters less than how soon they are built.
# The warnings are false ones of g++ 12 about std::string at -O1.
TEST_COPTS = ["-O1", "-Wno-array-bounds", "-Wno-stringop-overflow", "-Wno-restrict"]

def _include(header):
    return ["-include", header[2:].replace(":", "/") + ".h"]

def _compiled_with(rule, header, srcs = [], deps = [], copts = [], **kwargs):
    if srcs and not copts:
        copts = select({"//bazel:without_precompiled": [], "//conditions:default": _include(header)})
        deps = deps + select({"//bazel:without_precompiled": [], "//conditions:default": [header]})
    rule(srcs = srcs, copts = copts, deps = deps, **kwargs)

def ls_library(name, precompiled = "//bazel:precompiled", **kwargs):
    """cc_library, whose sources are compiled with the header `precompiled` read already.

    Sources with `copts` of their own are not: a compiled header only fits the flags that it was made with.
    """
    _compiled_with(native.cc_library, precompiled, name = name, **kwargs)

def ls_binary(name, precompiled = "//bazel:precompiled", **kwargs):
    """cc_binary, compiled as an ls_library is."""
    _compiled_with(native.cc_binary, precompiled, name = name, **kwargs)

def ls_test(
        name,
        srcs,
        deps = [],
        copts = [],
        linkopts = [],
        precompiled = "//bazel:test_precompiled",
        size = "medium",
        **kwargs):
    """A Catch2 test binary: sources with TEST_CASEs, main comes from //bazel:catch_main.

    `precompiled` is the header that is read already, made with the same flags. `size` is the time after which a test
    counts as one that hangs: 5 minutes, of which the longest takes one where other work shares the machine.
    """
    native.cc_test(
        name = name,
        srcs = srcs,
        copts = TEST_COPTS + _include(precompiled) + copts,
        linkopts = TEST_LINKOPTS + linkopts,
        deps = deps + ["//bazel:catch_main", precompiled],
        linkstatic = True,
        size = size,
        **kwargs
    )

def ls_proto(name, src, deps = [], grpc = False, visibility = ["//visibility:public"]):
    """A C++ library from one .proto; `deps` are other ls_proto targets, whose .proto files are imported.

    The sources of every proto are visible to the compiler through //protos:sources.
    """
    base = src[:-len(".proto")]
    outs = [base + ".pb.h", base + ".pb.cc"]
    cmd = "protoc --proto_path=. --cpp_out=$(GENDIR) "
    if grpc:
        outs += [base + ".grpc.pb.h", base + ".grpc.pb.cc"]
        cmd += "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR) "
    native.genrule(
        name = name + "_generated",
        srcs = [src, "//protos:sources"],
        outs = outs,
        cmd = cmd + "$(location " + src + ")",
        message = "Compiling proto",
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outs if o.endswith(".cc")],
        hdrs = [o for o in outs if o.endswith(".h")],
        copts = ["-Wno-unused-parameter", "-Wno-array-bounds", "-Wno-stringop-overflow"],
        linkopts = (["-lgrpc++", "-lgrpc", "-lgpr"] if grpc else []) + ["-lprotobuf"],
        visibility = visibility,
        deps = deps,
    )
