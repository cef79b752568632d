// Words of graphs, for mutators: the names of all ops, of attributes and their values, of types.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_TESTS_FUZZ_GRAPH_WORDS_H_
#define LOCKSTEP_TESTS_FUZZ_GRAPH_WORDS_H_

#include <string>
#include <vector>

#include "common/graph/ops/op_type.h"

namespace lockstep::fuzz {

inline std::vector<std::string> GraphWords() {
  std::vector<std::string> words = {
      "allowzero", "alpha", "approximate", "auto_pad", "axes", "axis", "batch_axis", "batch_dims", "beta", "blocksize",
      "ceil_mode", "coordinate_transformation_mode", "count_include_pad", "cubic_coeff_a", "delta", "depth",
      "detect_negative", "dilations", "direction", "dtype", "end", "ends", "epsilon", "equation", "exclude_outside",
      "exclusive", "extrapolation_value", "factor", "fmod", "group", "hidden_size", "ignore_index", "input_shape",
      "is_causal", "keep_aspect_ratio_policy", "keepdims", "kernel_shape", "k", "kind", "largest", "layout",
      "linear_before_reset", "max", "min", "mode", "momentum", "nearest_mode", "noop_with_empty_axes", "num_groups",
      "num_heads", "num_outputs", "of", "operand", "output_padding", "output_shape", "p", "packed_heads", "pads",
      "perm", "ratio", "reduction", "repeats", "reverse", "roi", "scale", "scales", "select_last_index", "shape",
      "sizes", "sorted", "split", "start", "starts", "stash_type", "steps", "storage_order", "stream", "strides",
      "time_axis", "to", "training_mode", "transA", "transB", "upper", "value", "value_float", "value_floats",
      "value_int", "value_ints",
      // Values.
      "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "constant", "reflect", "edge", "wrap", "nearest", "linear",
      "cubic", "add", "mul", "max", "min", "none", "mean", "sum", "tanh", "half_pixel", "align_corners", "asymmetric",
      "pytorch_half_pixel", "floor", "ceil", "DCR", "CRD", "forward", "reverse", "bidirectional", "ij,jk->ik",
      "...i->i",
      // Types, domains and ops that are taken apart while they are imported.
      "F32", "F64", "I64", "I32", "U8", "I8", "BOOL", "BF16", "lockstep", "ai.onnx", "com.microsoft", "LSTM", "GRU",
      "RNN", "Constant", "ConstantOfShape", "Identity", "If", "Loop", "Scan", "Shape", "Size", "Range", "Where"};
  for (const OpType type : AllOps()) words.emplace_back(OpName(type));
  return words;
}

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_GRAPH_WORDS_H_
