"""Files of the tree and of Debian packages, held in the program."""

def embedded_files(name, out, header, function, files, system_files = {}):
    """Generates `out`, a C++ source whose `function` (declared in `header`) returns the files.

    `files`: labels, held under their file names. `system_files`: path in the program → path on this system, of a package
    that deploy/packages.sh installs.
    """
    arguments = ["%s=$(location %s)" % (file.split(":")[-1].split("/")[-1], file) for file in files]
    arguments += ["%s=%s" % (path, system_files[path]) for path in sorted(system_files)]
    native.genrule(
        name = name,
        srcs = files,
        outs = [out],
        cmd = "$(location //bazel:embed_files) $@ %s %s %s" % (header, function, " ".join(arguments)),
        message = "Embedding files",
        tools = ["//bazel:embed_files"],
    )
