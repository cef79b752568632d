// Stage 2: the model, loss and update sections of a job, as plain structs, become a metagraph. The one place that knows
// the built-in architectures by name.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILD_BUILD_METAGRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_BUILD_BUILD_METAGRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/builtin/builtin.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// Which dimension of the scores the classes are, for softmax_cross_entropy.
enum class ClassAxis : uint8_t {
  kAuto,  // the one that leaves the shape of the labels
  kSecond,
  kLast,
};

struct MetaGraphRequest {
  ModelSpec model;
  // An imported forward graph, which then counts instead of `model`.
  std::optional<Graph> imported;
  std::vector<StateAlias> aliases;  // of the imported graph's variables
  // The model's inputs by name, in any order, a built-in's single one; and one label, which kGraphOutput can do
  // without. Shapes begin with kBatchDim.
  std::vector<SignatureInput> inputs;
  // `output` and `label` may be empty: then the model's first output and the only label are meant. classes_last follows
  // from `class_axis`.
  LossRule loss;
  ClassAxis class_axis = ClassAxis::kAuto;
  UpdateRule update;
  // Patterns of parameters (parameter_patterns.h): trained (empty: all), not trained, without weight decay.
  std::vector<std::string> trainable;
  std::vector<std::string> frozen;
  std::vector<std::string> no_decay;
  std::vector<ParameterGroup> groups;  // of patterns; a parameter belongs to the first one that names it
  int64_t pass_batch = 0;
  Precision precision = Precision::kFloat32;
};

// The metagraph of a job: validated, with the training graph derived once to see that it can be. InvalidArgument says
// which setting or node does not fit and what to change.
absl::StatusOr<MetaGraph> BuildMetaGraph(const MetaGraphRequest& request);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILD_BUILD_METAGRAPH_H_
