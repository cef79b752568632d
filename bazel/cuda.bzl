"""Finds NVIDIA's toolkit and libraries on this machine as the repository @cuda.

`@cuda//:defs.bzl` says what was found, so that BUILD files leave out what cannot be built:
  HAS_CUDA      a toolkit of version 13 or later (nvcc, headers, the static runtime, cuBLASLt)
  HAS_CUDNN     cuDNN 9 and the headers of its frontend     HAS_CUTLASS, HAS_NCCL   likewise
  NVCC, CUDA_VERSION, CUDNN_VERSION                         a path and "13.0"; empty where there is none
Targets exist only where what they stand for does: :toolkit (headers and the static runtime), :cublaslt, :cudnn,
:cudnn_frontend (cuDNN with the headers of its frontend), :cutlass, :nccl. All headers are system headers.

Looked for: the toolkit in CUDA_HOME, beside the nvcc of PATH, in /usr/local/cuda; cuDNN and NCCL in CUDNN_HOME and
NCCL_HOME, in the toolkit, in /usr. CUDA_HOME=none builds without. The wheels' headers come from deploy/cuda_headers.sh,
which runs only where there is a toolkit. `bazel sync --configure` looks again.
"""

_OLDEST = 13

def _note(text):
    print("CUDA: " + text)  # buildifier: disable=print

def _parent(path):
    return path[:path.rindex("/")] if "/" in path else path

def _first(repository, folders, name):
    """The first of the folders that has the file `name`, or None."""
    for folder in folders:
        if folder and repository.path(folder + "/" + name).exists:
            return folder
    return None

def _define(repository, header, name):
    """The number that `#define name` gives in a header, or 0."""
    for line in repository.read(header).split("\n"):
        words = [word for word in line.strip().split(" ") if word]
        if len(words) >= 3 and words[0] == "#define" and words[1] == name and words[2].isdigit():
            return int(words[2])
    return 0

def _toolkit(repository):
    """The toolkit's folder, nvcc and version; or a reason why there is none."""
    wanted = repository.os.environ.get("CUDA_HOME", "")
    if wanted == "none":
        return None, "left out, as CUDA_HOME=none asks"
    nvcc = repository.which("nvcc")
    candidates = [wanted] if wanted else []
    if not wanted and nvcc:
        candidates.append(_parent(_parent(str(nvcc.realpath))))
    if not wanted:
        candidates.append("/usr/local/cuda")
    root = _first(repository, candidates, "bin/nvcc")
    if not root:
        return None, "no toolkit in CUDA_HOME, PATH or /usr/local/cuda"
    root = str(repository.path(root).realpath)
    include = _first(repository, [root + "/include", root + "/targets/x86_64-linux/include"], "cuda_runtime.h")
    lib = _first(repository, [root + "/lib64", root + "/lib", root + "/targets/x86_64-linux/lib"], "libcudart_static.a")
    if not include or not lib:
        return None, "%s has nvcc but not cuda_runtime.h and libcudart_static.a" % root
    version = _define(repository, include + "/cuda.h", "CUDA_VERSION")
    if version < _OLDEST * 1000:
        return None, "%s is version %d.%d; %d.0 is the oldest that serves" % (root, version // 1000, version % 1000 // 10, _OLDEST)
    if not _first(repository, [include], "cublasLt.h") or not _first(repository, [lib], "libcublasLt.so"):
        return None, "%s has no cuBLASLt (cublasLt.h and libcublasLt.so)" % root
    return struct(
        nvcc = root + "/bin/nvcc",
        include = include,
        lib = lib,
        version = "%d.%d" % (version // 1000, version % 1000 // 10),
    ), None

def _library(repository, toolkit, home, header, library, entries):
    """Where a library beside the toolkit lies; its headers are linked into the repository. None where it is not."""
    prefix = repository.os.environ.get(home, "")
    include = _first(
        repository,
        [prefix + "/include"] if prefix else [toolkit.include, "/usr/include/x86_64-linux-gnu", "/usr/include"],
        header,
    )
    lib = _first(
        repository,
        [prefix + "/lib64", prefix + "/lib"] if prefix else [toolkit.lib, "/usr/lib/x86_64-linux-gnu", "/usr/lib64"],
        "lib" + library + ".so",
    )
    if not include or not lib:
        return None
    folder = library + "/include"
    if include == toolkit.include:
        folder = "toolkit/include"
    else:
        for entry in repository.path(include).readdir():
            if [True for start in entries if entry.basename.startswith(start)]:
                repository.symlink(entry, folder + "/" + entry.basename)
    return struct(header = include + "/" + header, folder = folder, lib = lib)

def _target(name, folder = "", linkopts = [], deps = []):
    """A cc_library of the headers below `folder`, in the words of a BUILD file."""
    return """
cc_library(
    name = "{name}",
    hdrs = {headers},
    includes = {includes},
    linkopts = {linkopts},
    deps = {deps},
)
""".format(
        name = name,
        headers = 'glob(["%s/**"])' % folder if folder else "[]",
        includes = repr([folder] if folder else []),
        linkopts = repr(linkopts),
        deps = repr(deps),
    )

def _link(lib, name):
    return ["-L" + lib, "-Wl,-rpath," + lib, "-l" + name]

def _wheel_headers(repository):
    """The folder that deploy/cuda_headers.sh prints, or None and a reason."""
    result = repository.execute([repository.path(Label("//deploy:cuda_headers.sh"))], timeout = 300)
    if result.return_code == 0:
        return result.stdout.strip(), None
    lines = result.stderr.strip().split("\n")
    return None, lines[-1] or "deploy/cuda_headers.sh ended with %d" % result.return_code

def _cuda_impl(repository):
    found = {
        "HAS_CUDA": False,
        "HAS_CUDNN": False,
        "HAS_CUTLASS": False,
        "HAS_NCCL": False,
        "NVCC": "",
        "CUDA_VERSION": "",
        "CUDNN_VERSION": "",
    }
    build = 'package(default_visibility = ["//visibility:public"])\n'
    toolkit, reason = _toolkit(repository)
    if toolkit:
        found.update(HAS_CUDA = True, NVCC = toolkit.nvcc, CUDA_VERSION = toolkit.version)
        repository.symlink(toolkit.include, "toolkit/include")
        build += _target(
            "toolkit",
            "toolkit/include",
            ["-L" + toolkit.lib, "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
        )
        build += _target("cublaslt", linkopts = _link(toolkit.lib, "cublasLt"), deps = [":toolkit"])
        build += _beside(repository, toolkit, found)
    elif repository.os.environ.get("CUDA_HOME", "none") != "none" or repository.which("nvidia-smi"):
        _note("built without it: " + reason)
    repository.file("BUILD.bazel", build)
    repository.file("defs.bzl", "".join(["%s = %s\n" % (name, repr(value)) for name, value in found.items()]))

def _beside(repository, toolkit, found):
    """The targets of what lies beside the toolkit; notes in `found` what there is."""
    build = ""
    nccl = _library(repository, toolkit, "NCCL_HOME", "nccl.h", "nccl", ["nccl"])
    if nccl:
        found["HAS_NCCL"] = True
        build += _target("nccl", "" if nccl.folder == "toolkit/include" else nccl.folder, _link(nccl.lib, "nccl"), [":toolkit"])
    else:
        _note("built without NCCL: no nccl.h and libnccl.so in NCCL_HOME, the toolkit or /usr")

    headers, reason = _wheel_headers(repository)
    if headers:
        found["HAS_CUTLASS"] = True
        repository.symlink(headers + "/cutlass/include", "cutlass/include")
        build += _target("cutlass", "cutlass/include", deps = [":toolkit"])

    cudnn = _library(repository, toolkit, "CUDNN_HOME", "cudnn_version.h", "cudnn", ["cudnn"])
    if not cudnn:
        _note("built without cuDNN: no cudnn_version.h and libcudnn.so in CUDNN_HOME, the toolkit or /usr")
        return build
    build += _target("cudnn", "" if cudnn.folder == "toolkit/include" else cudnn.folder, _link(cudnn.lib, "cudnn"), [":toolkit"])
    major = _define(repository, cudnn.header, "CUDNN_MAJOR")
    found["CUDNN_VERSION"] = "%d.%d" % (major, _define(repository, cudnn.header, "CUDNN_MINOR"))
    if major != 9:
        _note("built without cuDNN's kernels: version %s was found, 9 is wanted" % found["CUDNN_VERSION"])
    elif not headers:
        _note("built without cuDNN's kernels and CUTLASS: " + reason)
    else:
        found["HAS_CUDNN"] = True
        repository.symlink(headers + "/cudnn_frontend/include", "cudnn_frontend/include")
        # The frontend refers to NVRTC, which cuDNN's own engines need too.
        build += _target("cudnn_frontend", "cudnn_frontend/include", _link(toolkit.lib, "nvrtc"), [":cudnn"])
    return build

cuda_repository = repository_rule(
    implementation = _cuda_impl,
    configure = True,
    environ = ["CUDA_HOME", "CUDNN_HOME", "NCCL_HOME", "XDG_CACHE_HOME"],
    local = True,
    doc = "See the head of this file.",
)
