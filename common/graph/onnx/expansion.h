// Base class of the readers that expand one node of the file into several of ours. After a failure no more nodes are
// added: `status()` keeps the first failure, and the names returned mean nothing.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_EXPANSION_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_EXPANSION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/importer.h"

namespace lockstep {

class OnnxImporter::Expansion {
 protected:
  Expansion(OnnxImporter* importer, const Call& call) : importer_(importer), call_(call) {}

  const absl::Status& status() const { return status_; }

  std::string Add(OpType op, std::vector<std::string> inputs, RawAttributes attributes = {}) {
    return AddMany(op, std::move(inputs), std::move(attributes), 1)[0];
  }

  std::vector<std::string> AddMany(OpType op, std::vector<std::string> inputs, RawAttributes attributes,
                                   int64_t count) {
    const std::string label = importer_->Fresh(absl::StrCat(call_.label, ".", next_++));
    std::vector<std::string> outputs;
    for (int64_t i = 0; i < count; ++i) {
      outputs.push_back(count == 1 ? label : importer_->Fresh(absl::StrCat(label, ".", i)));
    }
    if (!status_.ok()) return outputs;
    const Call call{call_.node, std::move(attributes), label};
    status_ = importer_->Emit(call, op, std::move(inputs), outputs);
    return outputs;
  }

  std::string Reshape(const std::string& x, Shape shape) {
    return Add(OpType::kReshape, {x}, {{"shape", std::move(shape)}, {"allowzero", int64_t{1}}});
  }

  std::string Transpose(const std::string& x, std::vector<int64_t> order) {
    return Add(OpType::kTranspose, {x}, {{"perm", std::move(order)}});
  }

  // Every `step`-th element of a dimension, from `from` on and before `to`.
  std::string Part(const std::string& x, int64_t axis, int64_t from, int64_t to, int64_t step = 1) {
    using Ints = std::vector<int64_t>;
    return Add(OpType::kSlice, {x},
               {{"starts", Ints{from}}, {"ends", Ints{to}}, {"axes", Ints{axis}}, {"steps", Ints{step}}});
  }

  std::string Scale(const std::string& x, double factor) {
    return factor == 1 ? x : Add(OpType::kScale, {x}, {{"factor", factor}});
  }

  std::string Constant(Tensor value) {
    const std::string name = importer_->Fresh(absl::StrCat(call_.label, ".", next_++));
    importer_->Define(name, std::move(value));
    return name;
  }

  // A constant with these elements, rounded to `dtype`, which is F32 or F64.
  std::string Numbers(DType dtype, Shape shape, const std::vector<double>& values) {
    if (dtype == DType::kF64) return Constant(Tensor::Of<double>(std::move(shape), values));
    const std::vector<float> rounded(values.begin(), values.end());
    return Constant(Tensor::Of<float>(std::move(shape), rounded));
  }

  std::string Number(DType dtype, double value) { return Numbers(dtype, {}, {value}); }

  // Makes `value` the given output of the file's node.
  void Give(int output, const std::string& value) {
    if (status_.ok()) importer_->Alias(call_.node->output(output), value);
  }

  OnnxImporter* const importer_;
  const Call& call_;

 private:
  absl::Status status_;
  int64_t next_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_EXPANSION_H_
