// The graph of the objects in a TensorFlow checkpoint (docs/formats/tensorflow.md): named edges lead from a root to
// variables. Several paths may lead to one variable, and there may be cycles.
//
// Optimizers, objects that only they lead to, and the save counter are not part of the model: edges to them are not
// followed.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_GRAPH_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_GRAPH_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensorflow_bundle/object_key.h"

namespace lockstep {

inline constexpr char kModelObject[] = "model";
inline constexpr char kOptimizerObject[] = "optimizer";
inline constexpr char kSaveCounterObject[] = "save_counter";
inline constexpr char kVariableValue[] = "VARIABLE_VALUE";

class ObjectGraph {
 public:
  struct Variable {
    std::string key;  // in the index
    // The path from the root: the one in the key if it lies within the model, else the shortest one; empty when there
    // is none.
    ObjectPath path;
  };

  // Parses the value of kObjectGraphKey. DataLoss when it is malformed. InvalidArgument when it has too many objects or
  // edges, or too long paths.
  static absl::StatusOr<ObjectGraph> Parse(absl::string_view bytes);

  const std::vector<Variable>& variables() const { return variables_; }
  // The variable, as an index in variables(), at the end of a path from the model or the root whose edge names, joined
  // with '.', give `name`.
  std::optional<size_t> Find(absl::string_view name) const;

 private:
  struct Node {
    std::map<std::string, size_t> children;  // edges that may be followed
    std::optional<size_t> variable;          // index in variables_
  };

  std::optional<size_t> FindFrom(size_t node, absl::string_view name) const;
  bool Leads(const ObjectPath& path, size_t to) const;
  absl::Status SetPaths();

  std::vector<Node> nodes_;
  std::vector<Variable> variables_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_GRAPH_H_
