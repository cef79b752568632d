// ONNX's Attention, which exporters write from opset 23 on, as the products and the softmax that it stands for.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr int kMask = 3;

// 0 where a query may look at a key, minus infinity behind it. `mask` is [queries, keys], of zeros.
void FillCausalMask(Tensor* mask) {
  const int64_t queries = mask->shape()[0];
  const int64_t keys = mask->shape()[1];
  const absl::Span<float> values = mask->elements<float>();
  for (int64_t q = 0; q < queries; ++q) {
    for (int64_t k = q + 1; k < keys; ++k) {
      values[static_cast<size_t>(q * keys + k)] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace

class OnnxImporter::Attention : private Expansion {
 public:
  Attention(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  absl::Status Read() {
    LS_ASSIGN_OR_RETURN(raw_, importer_->ReadAttributes(*call_.node));
    LS_RETURN_IF_ERROR(Check());
    const std::vector<std::string> inputs = InputsOf(*call_.node);
    LS_ASSIGN_OR_RETURN(const std::string q, Heads(inputs[0], "q_num_heads"));
    LS_ASSIGN_OR_RETURN(std::string k, Heads(inputs[1], "kv_num_heads"));
    LS_ASSIGN_OR_RETURN(std::string v, Heads(inputs[2], "kv_num_heads"));
    LS_ASSIGN_OR_RETURN(const ValueInfo query, importer_->InfoOf(q));
    LS_ASSIGN_OR_RETURN(k, Repeat(k, query.shape[1]));
    LS_ASSIGN_OR_RETURN(v, Repeat(v, query.shape[1]));
    LS_ASSIGN_OR_RETURN(const ValueInfo key, importer_->InfoOf(k));
    LS_ASSIGN_OR_RETURN(const double scale,
                        FloatOf(raw_, "scale", 1.0 / std::sqrt(static_cast<double>(query.shape[3]))));
    std::string scores = Add(OpType::kBatchMatMul, {q, k}, {{"transB", int64_t{1}}});
    scores = Add(OpType::kScale, {scores}, {{"factor", scale}});
    if (inputs.size() > kMask) {
      LS_ASSIGN_OR_RETURN(scores, Masked(scores, inputs[kMask]));
    }
    if (IntOf(raw_, "is_causal", 0) != 0) {
      const std::string mask = importer_->Fresh(absl::StrCat(call_.label, ".causal"));
      if (query.dtype != DType::kF32) return absl::UnimplementedError("is causal and not in float32");
      LS_RETURN_IF_ERROR(status());
      LS_ASSIGN_OR_RETURN(Tensor causal, importer_->NewConstant(DType::kF32, {query.shape[2], key.shape[2]}));
      FillCausalMask(&causal);
      importer_->Define(mask, std::move(causal));
      scores = Add(OpType::kAdd, {scores, mask});
    }
    const std::string weights = Add(OpType::kSoftmax, {scores}, {{"axis", int64_t{-1}}});
    std::string y = Add(OpType::kBatchMatMul, {weights, v});
    if (flat_) {
      LS_RETURN_IF_ERROR(status());
      LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(y));
      y = Add(OpType::kTranspose, {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
      y = Reshape(y, {info.shape[0], info.shape[2], info.shape[1] * info.shape[3]});
    }
    Give(0, y);
    return status();
  }

 private:
  absl::Status Check() const {
    const std::vector<std::string> inputs = InputsOf(*call_.node);
    if (inputs.size() < 3) return absl::InvalidArgumentError("takes queries, keys and values");
    if (inputs.size() > kMask + 1) return absl::UnimplementedError("continues from past keys, as only inference does");
    for (int i = 1; i < call_.node->output_size(); ++i) {
      if (!call_.node->output(i).empty()) {
        return absl::UnimplementedError("gives its keys or scores, as only inference asks for");
      }
    }
    LS_ASSIGN_OR_RETURN(const double softcap, FloatOf(raw_, "softcap", 0));
    if (softcap == 0) return absl::OkStatus();
    return absl::UnimplementedError("caps its scores (softcap); export the model with opset_version=20");
  }

  // As [batch, heads, length, size], from that or from [batch, length, heads * size].
  absl::StatusOr<std::string> Heads(const std::string& x, const char* count) {
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(x));
    if (info.shape.size() == 4) return x;
    const int64_t heads = IntOf(raw_, count, 0);
    if (info.shape.size() != 3 || heads < 1 || info.shape[2] % heads != 0) {
      return absl::InvalidArgumentError(absl::StrCat("an operand of shape ", ShapeString(info.shape), " does not have ",
                                                     heads, " heads (", count, ")"));
    }
    flat_ = true;
    const std::string split = Reshape(x, {info.shape[0], info.shape[1], heads, info.shape[2] / heads});
    const std::string heads_first = Add(OpType::kTranspose, {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    LS_RETURN_IF_ERROR(status());
    return heads_first;
  }

  // Each head of keys and values for the queries that share it.
  absl::StatusOr<std::string> Repeat(const std::string& x, int64_t heads) {
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(x));
    const Shape& shape = info.shape;
    if (shape[1] == heads) return x;
    if (shape[1] < 1 || heads % shape[1] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(heads, " heads of queries share ", shape[1], " of keys"));
    }
    const std::string apart = Reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
    const std::string wide =
        Add(OpType::kExpand, {apart}, {{"shape", Shape{shape[0], shape[1], heads / shape[1], shape[2], shape[3]}}});
    const std::string repeated = Reshape(wide, {shape[0], heads, shape[2], shape[3]});
    LS_RETURN_IF_ERROR(status());
    return repeated;
  }

  absl::StatusOr<std::string> Masked(const std::string& scores, const std::string& mask) {
    if (mask.empty()) return scores;
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(mask));
    if (info.dtype != DType::kBool) return Add(OpType::kAdd, {scores, mask});
    const std::string never = importer_->Fresh(absl::StrCat(call_.label, ".never"));
    importer_->Define(never, Tensor::Of<float>({}, {-std::numeric_limits<float>::infinity()}));
    return Add(OpType::kWhere, {mask, scores, never});
  }

  RawAttributes raw_;
  bool flat_ = false;  // [batch, length, heads * size]
};

absl::Status OnnxImporter::ReadAttention(Call& call) { return Attention(this, call).Read(); }

}  // namespace lockstep
