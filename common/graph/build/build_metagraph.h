// Stage 2: builds the metagraph from the model, loss and update sections of a job, which arrive as plain structs.
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

// Which dimension of the scores holds the classes, for softmax_cross_entropy.
enum class ClassAxis : uint8_t {
  kAuto,  // the one without which the scores have the shape of the labels
  kSecond,
  kLast,
};

struct MetaGraphRequest {
  ModelSpec model;
  // An imported forward graph; when set, `model` is ignored.
  std::optional<Graph> imported;
  std::vector<StateAlias> aliases;  // of the imported graph's variables
  // The model's inputs by name, in any order (a built-in model has exactly one), and one label, which is optional for
  // kGraphOutput. Shapes begin with kBatchDim.
  std::vector<SignatureInput> inputs;
  // An empty `output` stands for the model's first output, an empty `label` for the only label. BuildMetaGraph sets
  // classes_last from `class_axis`.
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

// Returns the job's metagraph, validated; its training graph is derived once, to find errors early. InvalidArgument
// says which setting or node does not fit and what to change.
absl::StatusOr<MetaGraph> BuildMetaGraph(const MetaGraphRequest& request);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILD_BUILD_METAGRAPH_H_
