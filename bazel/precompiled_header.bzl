"""A header that the compiler reads once for many sources."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    ctx.actions.expand_template(template = ctx.file.src, output = header, substitutions = {})

    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    included = depset([header] + ctx.files.includes, transitive = [merged.compilation_context.headers])

    # The flags of every other source: the compiler takes the header's text instead where they differ.
    flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + ["-x", "c++-header"]
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = flags,
        source_file = header.path,
        output_file = compiled.path,
        quote_include_directories = depset([".", ctx.bin_dir.path]),
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = "c++-compile"),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        inputs = depset(transitive = [included, toolchain.all_files]),
        outputs = [compiled],
        use_default_shell_env = True,
        mnemonic = "PrecompiledHeader",
    )
    context = cc_common.create_compilation_context(headers = depset([compiled], transitive = [included]))
    return [CcInfo(compilation_context = context)]

# The header NAME.h is a copy of `src`, which may include the headers `includes` and those of `deps`. Sources that depend
# on it compile with `copts` and `-include PACKAGE/NAME.h`; what `deps` needs cannot be among them.
precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(),
        "includes": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
