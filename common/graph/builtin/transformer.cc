#include "common/graph/builtin/transformer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/graph/builtin/architectures.h"
#include "common/status/status_macros.h"
#include "common/tensor/shape.h"

namespace lockstep {

std::string Attention(LayerWriter* layers, const std::string& name, const std::string& q, const std::string& k,
                      const std::string& v, const AttentionShape& shape, const std::string& mask, double dropout) {
  const int64_t size = shape.width / shape.heads;
  const auto heads = [&](const char* part, const std::string& rows, std::vector<int64_t> order) {
    const std::string split =
        layers->Reshape(absl::StrCat(name, ".", part, ".split"), rows, {-1, shape.length, shape.heads, size});
    return layers->Transpose(absl::StrCat(name, ".", part), split, std::move(order));
  };
  const std::string queries = heads("q", q, {0, 2, 1, 3});
  const std::string keys = heads("k", k, {0, 2, 3, 1});
  const std::string values = heads("v", v, {0, 2, 1, 3});
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  std::string x = layers->Add(name + ".scores", OpType::kMatMul, {queries, keys});
  x = layers->Add(name + ".scaled", OpType::kMul,
                  {x, layers->Constant(name + ".scale", Tensor::Of<float>({}, {scale}))});
  if (!mask.empty()) x = layers->Add(name + ".masked", OpType::kAdd, {x, mask});
  x = layers->Add(name + ".softmax", OpType::kSoftmax, {x}, SoftmaxAttributes{-1});
  x = layers->Dropout(name + ".dropout", x, dropout);
  x = layers->Add(name + ".mixed", OpType::kMatMul, {x, values});
  x = layers->Transpose(name + ".gathered", x, {0, 2, 1, 3});
  return layers->Reshape(name + ".rows", x, {-1, shape.width});
}

std::string Residual(LayerWriter* layers, const std::string& name, const std::string& x, const std::string& y,
                     double dropout) {
  return layers->Add(name, OpType::kAdd, {x, layers->Dropout(name + ".dropout", y, dropout)});
}

std::string FirstRows(LayerWriter* layers, const std::string& name, const std::string& table, int64_t positions,
                      int64_t length) {
  if (positions == length) return table;
  return layers->Add(name, OpType::kSlice, {table}, SliceAttributes{{0}, {length}, {0}, {1}});
}

absl::Status CheckTransformer(const ModelSpec& model) {
  LS_RETURN_IF_ERROR(CheckDropout(model));
  if (model.layers < 1 || model.heads < 1 || model.width < 1) {
    return absl::InvalidArgumentError(absl::StrCat("model '", model.architecture, "' has ", model.layers, " layers, ",
                                                   model.heads, " heads and width ", model.width,
                                                   "; each has to be at least 1"));
  }
  if (model.width % model.heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model '", model.architecture, "': ", model.heads,
                                                 " heads do not divide the width ", model.width,
                                                 "; choose a width that is a multiple of heads"));
}

absl::Status CheckTokens(const ModelSpec& model, const GraphInput& input) {
  const bool integers = input.dtype == DType::kI64 || input.dtype == DType::kI32;
  if (!integers || input.shape.size() != 2 || input.shape[0] != kBatchDim || input.shape[1] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model.architecture, "' takes token numbers [batch, length], I64 or I32, but input '",
                     input.name, "' is ", DTypeName(input.dtype), " ", ShapeString(input.shape)));
  }
  if (model.vocabulary < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model.architecture, "' has a vocabulary of ", model.vocabulary));
  }
  if (input.shape[1] <= model.context) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model '", model.architecture, "' has ", model.context,
                                                 " positions, but a sample of '", input.name, "' has ", input.shape[1],
                                                 " tokens; raise the context, or use shorter samples"));
}

}  // namespace lockstep
