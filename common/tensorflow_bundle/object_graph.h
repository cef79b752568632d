// The objects that a TensorFlow checkpoint was taken of (docs/formats/tensorflow.md): a graph from a root over named
// edges to variables. It may have several ways to a variable, and circles.
//
// Optimizers, what only they lead to, and the count of the saves are no part of the model: an edge to one is not gone.
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
    // From the root: as the key says where that is a way within the model, else the shortest one; empty: there is none.
    ObjectPath path;
  };

  // Parses the value of kObjectGraphKey. DataLoss: it is malformed. InvalidArgument: it has more objects or
  // edges, or longer paths, than what is read.
  static absl::StatusOr<ObjectGraph> Parse(absl::string_view bytes);

  const std::vector<Variable>& variables() const { return variables_; }
  // The variable, an index in variables(), to which a way leads from the model or the root whose names, joined with
  // '.', are `name`.
  std::optional<size_t> Find(absl::string_view name) const;

 private:
  struct Node {
    std::map<std::string, size_t> children;  // those that may be gone to
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
