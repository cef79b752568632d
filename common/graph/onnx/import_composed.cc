// ONNX's ops that are a few of ours each.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/status/status_macros.h"

namespace lockstep {

class OnnxImporter::Composed : private Expansion {
 public:
  Composed(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  // X * sigmoid(alpha * X), times B where there is one.
  absl::Status GiveSwish(const std::string& x, double alpha, const std::string& b) {
    const std::string swish = Add(OpType::kMul, {x, Add(OpType::kSigmoid, {Scale(x, alpha)})});
    Give(0, b.empty() ? swish : Add(OpType::kMul, {swish, b}));
    return status();
  }

  // The channels of the result are (C, row in the block, column in the block).
  absl::Status GiveChannelsFirst(const std::string& x, const Shape& shape, int64_t size) {
    const std::string parts = Reshape(x, {shape[0], shape[1], shape[2] / size, size, shape[3] / size, size});
    const std::string ordered = Transpose(parts, {0, 1, 3, 5, 2, 4});
    Give(0, Reshape(ordered, {shape[0], shape[1] * size * size, shape[2] / size, shape[3] / size}));
    return status();
  }

  // The first `rotated` elements of every head, as pairs (x1, x2), become (cos x1 - sin x2, sin x1 + cos x2).
  absl::Status GiveRotated(std::vector<std::string> inputs, bool interleaved, int64_t rotated, int64_t heads) {
    LS_ASSIGN_OR_RETURN(const ValueInfo given, importer_->InfoOf(inputs[0]));
    const bool flat = given.shape.size() == 3;
    if ((!flat && given.shape.size() != 4) || (flat && (heads < 1 || given.shape[2] % heads != 0))) {
      return absl::InvalidArgumentError(
          absl::StrCat("X ", ShapeString(given.shape), " does not have ", heads, " heads (num_heads)"));
    }
    const Shape rows = flat ? Shape{given.shape[0], given.shape[1], heads, given.shape[2] / heads}
                            : Shape{given.shape[0], given.shape[2], given.shape[1], given.shape[3]};
    const std::vector<int64_t> exchange = {0, 2, 1, 3};
    // [batch, length, heads, size]
    const std::string x = flat ? Reshape(inputs[0], rows) : Transpose(inputs[0], exchange);
    const int64_t width = rotated == 0 ? rows[3] : rotated;
    if (width < 2 || width % 2 != 0 || width > rows[3]) {
      return absl::InvalidArgumentError(absl::StrCat("rotates ", width, " of ", rows[3], " elements of a head"));
    }
    const std::string head = width == rows[3] ? x : Part(x, 3, 0, width);
    const std::string first = interleaved ? Part(head, 3, 0, width, 2) : Part(head, 3, 0, width / 2);
    const std::string second = interleaved ? Part(head, 3, 1, width, 2) : Part(head, 3, width / 2, width);
    const std::string cosine = Angles(inputs[1], inputs);
    const std::string sine = Angles(inputs[2], inputs);
    const std::string real = Add(OpType::kSub, {Add(OpType::kMul, {cosine, first}), Add(OpType::kMul, {sine, second})});
    const std::string imaginary =
        Add(OpType::kAdd, {Add(OpType::kMul, {sine, first}), Add(OpType::kMul, {cosine, second})});
    std::string y = interleaved ? Interleave(real, imaginary, {rows[0], rows[1], rows[2], width})
                                : Add(OpType::kConcat, {real, imaginary}, {{"axis", int64_t{3}}});
    if (width < rows[3]) y = Add(OpType::kConcat, {y, Part(x, 3, width, rows[3])}, {{"axis", int64_t{3}}});
    Give(0, flat ? Reshape(y, given.shape) : Transpose(y, exchange));
    return status();
  }

 private:
  // [batch, length, 1, width / 2] of a table, by positions where those are given.
  std::string Angles(const std::string& table, const std::vector<std::string>& inputs) {
    const bool by_position = inputs.size() > 3 && !inputs[3].empty();
    const std::string rows = by_position ? Add(OpType::kGather, {table, inputs[3]}, {{"axis", int64_t{0}}}) : table;
    return Add(OpType::kUnsqueeze, {rows}, {{"axes", std::vector<int64_t>{2}}});
  }

  std::string Interleave(const std::string& a, const std::string& b, const Shape& shape) {
    const RawAttributes last = {{"axes", std::vector<int64_t>{4}}};
    const std::string pairs =
        Add(OpType::kConcat, {Add(OpType::kUnsqueeze, {a}, last), Add(OpType::kUnsqueeze, {b}, last)},
            {{"axis", int64_t{4}}});
    return Reshape(pairs, shape);
  }
};

absl::Status OnnxImporter::ReadSwish(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"alpha"}));
  LS_ASSIGN_OR_RETURN(const double alpha, FloatOf(raw, "alpha", 1));
  const int inputs = call.node->op_type() == "SwiGLU" ? 2 : 1;
  if (call.node->input_size() != inputs) return absl::InvalidArgumentError(absl::StrCat("takes ", inputs, " inputs"));
  return Composed(this, call).GiveSwish(call.node->input(0), alpha, inputs == 2 ? call.node->input(1) : "");
}

absl::Status OnnxImporter::ReadSpaceToDepth(Call& call) {
  LS_ASSIGN_OR_RETURN(RawAttributes raw, ReadAttributes(*call.node));
  const auto mode = raw.find("mode");
  if (mode == raw.end() || call.node->input_size() != 1) return ReadGeneric(call);
  const auto* name = std::get_if<std::string>(&mode->second);
  if (name == nullptr || (*name != "DCR" && *name != "CRD")) {
    return absl::InvalidArgumentError("mode is neither DCR nor CRD");
  }
  const int64_t size = IntOf(raw, "blocksize", 0);
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  const bool fits = x.shape.size() == 4 && size > 0 && x.shape[2] % size == 0 && x.shape[3] % size == 0;
  if (*name == "CRD" && fits) return Composed(this, call).GiveChannelsFirst(call.node->input(0), x.shape, size);
  raw.erase(mode);
  call.attributes = std::move(raw);
  return Emit(call, OpType::kSpaceToDepth, {call.node->input(0)}, {call.node->output(0)});
}

absl::Status OnnxImporter::ReadRotaryEmbedding(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"interleaved", "num_heads", "rotary_embedding_dim"}));
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.size() < 3) return absl::InvalidArgumentError("takes X, cosines and sines");
  return Composed(this, call)
      .GiveRotated(inputs, IntOf(raw, "interleaved", 0) != 0, IntOf(raw, "rotary_embedding_dim", 0),
                   IntOf(raw, "num_heads", 0));
}

}  // namespace lockstep
