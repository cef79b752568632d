// The built-in architectures. Each emits the graph that exporting the same PyTorch module would give, with the names of
// the module's state dict and the initialisation of the implementation that the list names.
//
//   mlp       fc1, relu, fc2, ..., fc<n>, with Flatten in front; hidden_sizes give fc1 to fc<n-1>; initialisation of
//             torch.nn
//
//   lenet     conv1 (6, 5x5, pad 2), relu, maxpool 2, conv2 (16, 5x5), relu, maxpool 2, fc1 (120), relu, fc2 (84),
//             relu, fc3; initialisation of torch.nn
//
//   resnet18, resnet34, resnet50
//             names and initialisation of torchvision.models; with small_images conv1 is 3x3 with stride 1 and there
//             is no first pooling, as is usual for images of 32x32
//   gpt2      names and weight layout of transformers.GPT2LMHeadModel: c_attn, c_proj and c_fc are stored [in, out],
//             the head shares transformer.wte.weight. Weights start as normal(0, 0.02), those of both c_proj divided by
//             sqrt(2 * layers), biases 0; GELU by tanh
//   bert      names of transformers.BertForSequenceClassification, all tokens of the first type and none masked;
//             weights start as normal(0, 0.02), biases as 0
//   vit       names and initialisation of torchvision.models.VisionTransformer, with an mlp of 4 * width; but the
//             patch weights are plain normal, where torchvision truncates the distribution at +-2
//
// Inputs: images [batch, channels, height, width] F32; gpt2 and bert take token numbers [batch, length] I64 or I32. All
// give scores [batch, outputs], gpt2 [batch, length, vocabulary].
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILTIN_BUILTIN_H_
#define LOCKSTEP_COMMON_GRAPH_BUILTIN_BUILTIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

struct ModelSpec {
  std::string architecture;  // one of ArchitectureNames
  // Size of the last layer: the number of classes for softmax_cross_entropy. gpt2 ignores it.
  int64_t outputs = 10;
  std::vector<int64_t> hidden_sizes = {};  // mlp
  std::string activation = "relu";         // mlp: "relu", "sigmoid" or "tanh"
  // In [0, 1). mlp: after each hidden activation; gpt2, bert, vit: embeddings, attention weights (not in vit), and
  // every branch before it is added to the residual path
  double dropout = 0.0;
  bool batch_norm = false;    // mlp: bn<i> between fc<i> and its activation
  bool small_images = false;  // resnet
  // gpt2, bert, vit
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;
  int64_t context = 1024;      // gpt2, bert: positions that have an embedding; the input may be shorter
  int64_t vocabulary = 50257;  // gpt2, bert
  int64_t patch = 16;          // vit: height and width of a patch
};

// The forward graph, with one output called "logits". InvalidArgument for an unknown architecture or an input that it
// cannot take.
absl::StatusOr<Graph> BuildArchitecture(const ModelSpec& model, const GraphInput& input);

// The names that BuildArchitecture knows, for messages.
std::vector<std::string> ArchitectureNames();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILTIN_BUILTIN_H_
