"""Libraries and tests that include the coordinator's events and actions, which are compiled once for all of them."""

load("//bazel:lockstep.bzl", "ls_library", "ls_test")

def core_library(**kwargs):
    """ls_library that depends on //chief/core:actions, directly or not."""
    ls_library(precompiled = "//chief/core:precompiled", **kwargs)

def core_test(**kwargs):
    """ls_test of such a library."""
    ls_test(precompiled = "//chief/core:test_precompiled", **kwargs)
