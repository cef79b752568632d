"""Tests of real processes: a chief and workers from the `lockstep` binary."""

load("//bazel:lockstep.bzl", "ls_test")

def e2e_test(name, srcs = None, data = [], deps = [], alone = False):
    """A test that runs `lockstep` with the example jobs.

    `alone`: no other test runs beside it, because it measures memory, or counts seconds that a machine without a free
    core does not keep. The others wait most of their time.
    """
    ls_test(
        name = name,
        size = "large",  # 15 minutes; the longest takes four where other work shares the machine
        srcs = srcs or [name + ".cc"],
        data = data + [
            "//deploy/cli:lockstep",
            "//deploy/jobs",
        ],
        tags = ["exclusive"] if alone else [],
        deps = deps + [
            ":local_job",
            "//bazel/system:absl",
            "//common/status:exit_code",
        ],
    )
