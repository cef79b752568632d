"""A test that is built and run a second time, under AddressSanitizer and UndefinedBehaviorSanitizer."""

_SANITIZERS = "-fsanitize=address,undefined"

# As --config=address and --config=undefined in .bazelrc, which a rule cannot read, but for what costs most to compile: with
# these a source takes a third of the time.
_COPTS = [
    _SANITIZERS,
    "-fno-sanitize=alignment,null,vptr",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
    "-DLOCKSTEP_POISON",
    "-O0",
    "-U_FORTIFY_SOURCE",
    "-Wno-maybe-uninitialized",
]

_ENVIRONMENT = {
    "LOCKSTEP_SANITIZER": "address",
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}

_COPT = "//command_line_option:copt"
_LINKOPT = "//command_line_option:linkopt"
_PER_FILE_COPT = "//command_line_option:per_file_copt"
_SANITIZED = "//bazel:sanitized"

def _sanitized_flag_impl(ctx):
    return []

# Whether everything is built for a sanitizer.
sanitized_flag = rule(
    implementation = _sanitized_flag_impl,
    build_setting = config.bool(flag = True),
)

def _sanitize_impl(settings, attr):
    if settings[_SANITIZED]:
        return settings
    return {
        _COPT: settings[_COPT] + _COPTS,
        _LINKOPT: settings[_LINKOPT] + [_SANITIZERS],
        _PER_FILE_COPT: [],
        _SANITIZED: True,
    }

_sanitize = transition(
    implementation = _sanitize_impl,
    inputs = [_COPT, _LINKOPT, _PER_FILE_COPT, _SANITIZED],
    outputs = [_COPT, _LINKOPT, _PER_FILE_COPT, _SANITIZED],
)

def _sanitized_test_impl(ctx):
    program = ctx.attr.program[0][DefaultInfo]
    test = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = test, target_file = program.files_to_run.executable, is_executable = True)
    return [
        DefaultInfo(executable = test, runfiles = program.default_runfiles),
        testing.TestEnvironment(_ENVIRONMENT),
    ]

# `program`: a test, whose `args` have to be given again.
sanitized_test = rule(
    implementation = _sanitized_test_impl,
    attrs = {
        "program": attr.label(executable = True, cfg = _sanitize, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    test = True,
)
