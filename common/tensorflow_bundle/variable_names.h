// What the variables of a TensorFlow V2 checkpoint are called here: a path of objects with '.' between its parts, as
// PyTorch has it, or the name of a checkpoint that goes by names with '.' for '/'; both without a leading "model".
//
// Variables of optimizers and counts of saves or steps have no name: they are no weights.
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

  // Of a checkpoint that goes by objects. `graph` is the value of kObjectGraphKey. InvalidArgument: two variables come
  // to one name. DataLoss: the graph is malformed, or names a key that the index lacks.
  static absl::StatusOr<VariableNames> OfObjects(const BundleIndex& index, absl::string_view graph);
  // Of a checkpoint that goes by names, as tf.compat.v1.train.Saver writes it. InvalidArgument also where names are
  // longer than what is read.
  static absl::StatusOr<VariableNames> OfNames(const BundleIndex& index);

  const std::vector<Variable>& variables() const { return variables_; }
  // How many variables of optimizers have no name.
  size_t of_optimizers() const { return of_optimizers_; }
  // The variable, an index in variables(), that goes by this name too: another way through the objects leads there.
  std::optional<size_t> FindSecondName(absl::string_view name) const;

 private:
  // Fills variables_. A path begins with "model" where all of a model's do.
  absl::Status Take(const BundleIndex& index, const std::vector<std::pair<ObjectPath, size_t>>& paths);

  std::vector<Variable> variables_;
  size_t of_optimizers_ = 0;
  std::optional<ObjectGraph> graph_;
  std::map<size_t, size_t> by_graph_;  // index in the graph's variables: index in variables_
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_VARIABLE_NAMES_H_
