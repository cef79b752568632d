// The parts that the built-in transformers share.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILTIN_TRANSFORMER_H_
#define LOCKSTEP_COMMON_GRAPH_BUILTIN_TRANSFORMER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/graph/builtin/builtin.h"
#include "common/graph/builtin/layer_writer.h"

namespace lockstep {

// Activations are kept as rows [batch * length, width], which every dense layer and normalisation takes as they are.
struct AttentionShape {
  int64_t length = 0;
  int64_t heads = 0;
  int64_t width = 0;
};

// softmax(q k^T / sqrt(width / heads) + mask) v, head by head, from rows to rows. `mask` is a value that broadcasts to
// [batch, heads, length, length], or empty.
std::string Attention(LayerWriter* layers, const std::string& name, const std::string& q, const std::string& k,
                      const std::string& v, const AttentionShape& shape, const std::string& mask, double dropout);

// x + Dropout(y), the addition called "<name>".
std::string Residual(LayerWriter* layers, const std::string& name, const std::string& x, const std::string& y,
                     double dropout);

// Rows of `table` [positions, width] for the first `length` positions.
std::string FirstRows(LayerWriter* layers, const std::string& name, const std::string& table, int64_t positions,
                      int64_t length);

// InvalidArgument unless layers, heads and width are positive and heads divide the width.
absl::Status CheckTransformer(const ModelSpec& model);

// InvalidArgument unless the input is [batch, length] of I64 or I32 with 1 <= length <= context.
absl::Status CheckTokens(const ModelSpec& model, const GraphInput& input);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILTIN_TRANSFORMER_H_
