// Names the variables of a TensorFlow V2 checkpoint. In an object-based checkpoint the name is the path of objects
// joined with '.', as in PyTorch; in a name-based one it is the name with '.' for '/'. A leading "model" is dropped.
//
// Variables of optimizers and counters of saves or steps get no name, since they are no weights.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_VARIABLE_NAMES_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_VARIABLE_NAMES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensorflow_bundle/bundle_index.h"
#include "common/tensorflow_bundle/object_graph.h"

namespace lockstep {

class VariableNames {
 public:
  struct Variable {
    std::string name;
    size_t entry = 0;  // in BundleIndex::entries
  };

  // The names of an object-based checkpoint. `graph` is the value of kObjectGraphKey. InvalidArgument when two
  // variables get the same name. DataLoss when the graph is malformed, or names a key that the index lacks.
  static absl::StatusOr<VariableNames> OfObjects(const BundleIndex& index, absl::string_view graph);
  // The names of a name-based checkpoint, as tf.compat.v1.train.Saver writes it. InvalidArgument also when names are
  // too long.
  static absl::StatusOr<VariableNames> OfNames(const BundleIndex& index);

  const std::vector<Variable>& variables() const { return variables_; }
  // The number of variables of optimizers, which have no name.
  size_t of_optimizers() const { return of_optimizers_; }
  // The variable, as an index in variables(), that has this second name, because another path through the objects leads
  // to it.
  std::optional<size_t> FindSecondName(absl::string_view name) const;

 private:
  // Fills variables_. A path begins with "model" where all of a model's do.
  absl::Status Take(const BundleIndex& index, const std::vector<std::pair<ObjectPath, size_t>>& paths);

  std::vector<Variable> variables_;
  size_t of_optimizers_ = 0;
  std::optional<ObjectGraph> graph_;
  std::map<size_t, size_t> by_graph_;  // index in the graph's variables -> index in variables_
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_VARIABLE_NAMES_H_
