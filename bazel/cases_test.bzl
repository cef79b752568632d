"""A test that is one source's test cases in a program of several sources."""

def _cases_test_impl(ctx):
    program = ctx.attr.program[DefaultInfo]
    test = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = test, target_file = ctx.executable.program, is_executable = True)
    runfiles = ctx.runfiles(files = ctx.files.data).merge(program.default_runfiles)
    for data in ctx.attr.data:
        runfiles = runfiles.merge(data[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = test, runfiles = runfiles)]

# `args` choose the cases.
cases_test = rule(
    implementation = _cases_test_impl,
    attrs = {
        "program": attr.label(executable = True, cfg = "target", mandatory = True),
        "data": attr.label_list(allow_files = True),
    },
    test = True,
)
