"""Sources that are compiled as one, for the headers and templates that each of them would cost again."""

def join(ctx, files, together):
    """Declares sources NAME/0.cc, NAME/1.cc, … that include `files`, at most `together` neighbours each.

    Returns a struct for each: the `source`, and the `files` that it includes.
    """
    joints = (len(files) + together - 1) // together
    joined = []
    for i in range(joints):
        part = files[i * len(files) // joints:(i + 1) * len(files) // joints]
        joint = ctx.actions.declare_file("%s/%d.cc" % (ctx.label.name, i))
        ctx.actions.write(joint, "".join(["#include \"%s\"\n" % file.short_path for file in part]))
        joined.append(struct(source = joint, files = part))
    return joined

def _joined_sources_impl(ctx):
    files = ctx.files.srcs
    return [
        DefaultInfo(files = depset([joint.source for joint in join(ctx, files, ctx.attr.together)])),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(files))),
    ]

# For the srcs and the deps of a C++ rule. What neighbours in `srcs` have for themselves needs names of its own.
joined_sources = rule(
    implementation = _joined_sources_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
        "together": attr.int(mandatory = True),
    },
)
