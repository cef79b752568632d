"""Tests of real processes: a chief and workers from the `lockstep` binary."""

load("//bazel:lockstep.bzl", "ls_cases_test")

def e2e_test(name, data = [], alone = False, shards = 1):
    """The cases of NAME.cc in :tests, which run `lockstep` with the example jobs.

    `alone`: no other test runs beside it, because it measures memory, or counts seconds that a machine without a free
    core does not keep. The others wait most of their time.
    `shards`: into so many tests the cases are dealt, where one test of them all would run last and alone.
    """
    ls_cases_test(
        name = name,
        shard_count = shards if shards > 1 else None,
        size = "large",  # 15 minutes; the longest takes five where other work shares the machine
        program = ":tests",
        data = data + [
            "//deploy/cli:lockstep",
            "//deploy/jobs",
        ],
        tags = ["exclusive"] if alone else [],
    )
