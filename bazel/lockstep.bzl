"""Macros of the build: libraries and programs with compiled headers, tests on Catch2, protos by the packaged compiler."""

load(":cases_test.bzl", "cases_test")
load(":joined_sources.bzl", "joined_sources")
load(":sanitized_test.bzl", "sanitized_test")

# lld links a test in a third of the time that gold takes.
TEST_LINKOPTS = ["-fuse-ld=lld"]

# How tests are compiled: their own speed matters less than how soon they are built. At -Og they compile in three
# quarters of the time that -O1 takes. The warnings are false ones of g++ 12 about std::string.
TEST_COPTS = ["-Wno-array-bounds", "-Wno-stringop-overflow", "-Wno-restrict"] + select({
    "//bazel:with_sanitizer": [],  # which says how much to optimise
    "//conditions:default": ["-Og"],
})

# Headers that are compiled once: headers.h, and with test_headers.h for what is compiled with TEST_COPTS.
_PRECOMPILED = "//bazel:precompiled"
_TEST_PRECOMPILED = "//bazel:test_precompiled"

# So many sources are compiled as one.
_TOGETHER = 32

def _include(header):
    return ["-include", header[2:].replace(":", "/") + ".h"]

def _joined(name, srcs, together, testonly):
    """The sources that are compiled in place of `srcs`, and the dependency that they need."""
    sources = [source for source in srcs if source.endswith(".cc")]
    if together < 2 or len(sources) < 2:
        return srcs, []
    joined = [":" + name + "_joined"]
    joined_sources(name = name + "_joined", testonly = testonly, srcs = sources, together = together)
    headers = [source for source in srcs if source not in sources]
    return (
        select({"//bazel:without_precompiled": srcs, "//conditions:default": headers + joined}),
        select({"//bazel:without_precompiled": [], "//conditions:default": joined}),
    )

def _compile(rule, name, together, srcs = [], deps = [], copts = [], testonly = None, **kwargs):
    if srcs and not copts:
        copts = select({"//bazel:without_precompiled": [], "//conditions:default": _include(_PRECOMPILED)})
        deps = deps + select({"//bazel:without_precompiled": [], "//conditions:default": [_PRECOMPILED]})
    srcs, joined = _joined(name, srcs, together, testonly)
    rule(name = name, srcs = srcs, copts = copts, deps = deps + joined, testonly = testonly, **kwargs)

def ls_library(name, together = _TOGETHER, **kwargs):
    """cc_library, whose sources are compiled with headers.h read already, and `together` at a time.

    A folder has one library, and a second one where something else must not depend on all of it. Sources with `copts` of
    their own are compiled without headers.h: a compiled header only fits the flags that it was made with. What
    neighbours in `srcs` have for themselves needs names of its own, or `together` is 1.
    """
    _compile(native.cc_library, name, together, **kwargs)

def ls_binary(name, together = _TOGETHER, **kwargs):
    """cc_binary, compiled as an ls_library is."""
    _compile(native.cc_binary, name, together, **kwargs)

def _test_program(rule, name, srcs, deps, copts, linkopts, together, **kwargs):
    srcs, joined = _joined(name, srcs, together, testonly = True)
    rule(
        name = name,
        srcs = srcs,
        copts = TEST_COPTS + _include(_TEST_PRECOMPILED) + copts,
        linkopts = TEST_LINKOPTS + linkopts,
        deps = deps + joined + ["//bazel:catch_main", _TEST_PRECOMPILED],
        linkstatic = True,
        **kwargs
    )

def ls_test(
        name,
        srcs,
        deps = [],
        copts = [],
        linkopts = [],
        together = _TOGETHER,
        size = "medium",
        sanitized = False,
        **kwargs):
    """A Catch2 test binary: sources with TEST_CASEs, main comes from //bazel:catch_main.

    `together` as in ls_library. `size` is the time after which a test counts as one that hangs: 5 minutes, of which the
    longest takes one where other work shares the machine. `sanitized`: it also runs under sanitizers, as NAME_sanitized.
    """
    if sanitized:
        sanitized_test(name = name + "_sanitized", program = ":" + name, size = size, tags = ["sanitized"])
    _test_program(native.cc_test, name, srcs, deps, copts, linkopts, together, size = size, **kwargs)

def ls_test_program(
        name,
        srcs,
        deps = [],
        copts = [],
        linkopts = [],
        together = _TOGETHER):
    """A program of the tests of several sources, for an ls_cases_test of each: it is linked once."""
    _test_program(native.cc_binary, name, srcs, deps, copts, linkopts, together, testonly = True)

def ls_cases_test(name, program, size = "medium", **kwargs):
    """The test cases that the source NAME.cc of an ls_test_program has."""
    cases_test(name = name, program = program, args = ["-#", "[#" + name + "]", "-w", "NoTests"], size = size, **kwargs)

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
