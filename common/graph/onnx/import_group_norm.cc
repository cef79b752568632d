// ONNX's GroupNormalization of opsets 18 to 20, whose scale and bias are one per group.
#include <utility>

#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/status/status_macros.h"

namespace lockstep {

class OnnxImporter::GroupNormalization : private Expansion {
 public:
  GroupNormalization(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  // [groups] as [channels].
  std::string PerChannel(const std::string& x, int64_t groups, int64_t channels) {
    return Reshape(Add(OpType::kExpand, {Reshape(x, {groups, 1})}, {{"shape", Shape{groups, channels / groups}}}),
                   {channels});
  }

  using Expansion::status;
};

absl::Status OnnxImporter::ReadGroupNormalization(Call& call) {
  if (opset() >= 21 || call.node->input_size() != 3) return ReadGeneric(call);
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  const int64_t groups = IntOf(raw, "num_groups", 0);
  if (groups < 1 || x.shape.size() < 2 || x.shape[1] % groups != 0) return ReadGeneric(call);
  onnx::NodeProto per_channel = *call.node;
  GroupNormalization expansion(this, call);
  for (int i = 1; i < 3; ++i) {
    LS_ASSIGN_OR_RETURN(const ValueInfo given, InfoOf(call.node->input(i)));
    if (given.shape != Shape{groups}) return ReadGeneric(call);
    per_channel.set_input(i, expansion.PerChannel(call.node->input(i), groups, x.shape[1]));
  }
  LS_RETURN_IF_ERROR(expansion.status());
  Call with_channels{&per_channel, call.attributes, call.label};
  return ReadGeneric(with_channels);
}

}  // namespace lockstep
