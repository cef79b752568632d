// Writes a forward graph layer by layer: nodes, variables under PyTorch's names, constants.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILTIN_LAYER_WRITER_H_
#define LOCKSTEP_COMMON_GRAPH_BUILTIN_LAYER_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/ops/ir.h"

namespace lockstep {

// Initialisation of a layer's weight and bias.
struct LayerInit {
  InitRule weight;
  InitRule bias;
};

InitRule ConstantInit(double value);
InitRule NormalInit(double deviation);
InitRule UniformInit(double bound);
// torch.nn's default of Linear and Conv2d, weight and bias alike: uniform in +-1 / sqrt(fan_in).
LayerInit TorchInit(int64_t fan_in);

// Unless said otherwise a function appends one node called `name` and returns the name of its output, "<name>.out".
class LayerWriter {
 public:
  explicit LayerWriter(const GraphInput& input);

  const GraphInput& input() const { return graph_.inputs[0]; }

  std::string Add(const std::string& name, OpType op, std::vector<std::string> inputs,
                  OpAttributes attributes = NoAttributes{});
  // Splits `x` into `parts` parts of `size` elements along `axis`, called "<name>.<i>".
  std::vector<std::string> Split(const std::string& name, const std::string& x, int64_t axis, int64_t parts,
                                 int64_t size);

  // Add a variable or a constant and return `name`.
  std::string Parameter(const std::string& name, Shape shape, const InitRule& init);
  std::string Constant(const std::string& name, Tensor value);

  // torch.nn.Linear over rows [n, in].
  std::string Linear(const std::string& name, const std::string& x, int64_t in, int64_t out, const LayerInit& init);
  // torch.nn.Conv2d with a square kernel. The overload with an InitRule has no bias.
  std::string Conv2d(const std::string& name, const std::string& x, Shape weight, int64_t stride, int64_t pad,
                     const LayerInit& init);
  std::string Conv2d(const std::string& name, const std::string& x, Shape weight, int64_t stride, int64_t pad,
                     const InitRule& init);
  // torch.nn.MaxPool2d
  std::string MaxPool(const std::string& name, const std::string& x, int64_t kernel, int64_t stride, int64_t pad);
  // torch.nn.BatchNorm1d and 2d
  std::string BatchNorm(const std::string& name, const std::string& x, int64_t channels);
  // torch.nn.LayerNorm over the last dimension
  std::string LayerNorm(const std::string& name, const std::string& x, int64_t width, double epsilon);
  // torch.nn.Dropout; returns `x` and adds no node for a ratio of 0.
  std::string Dropout(const std::string& name, const std::string& x, double ratio);
  std::string Reshape(const std::string& name, const std::string& x, Shape shape);
  std::string Transpose(const std::string& name, const std::string& x, std::vector<int64_t> order);

  // The graph with one output, `value` under the name "logits". REQUIRES: the last node gives `value`.
  Graph Finish();

 private:
  std::string ConvNode(const std::string& name, std::vector<std::string> inputs, int64_t kernel, int64_t stride,
                       int64_t pad);

  Graph graph_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILTIN_LAYER_WRITER_H_
