// The keys under which TensorFlow's object-based checkpoints keep variables: the path to the variable from the root of
// the objects, "a/b/.ATTRIBUTES/VARIABLE_VALUE" (docs/formats/tensorflow.md).
//
// Threading: stateless.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_KEY_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_KEY_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// From the root: names of attributes, keys of dictionaries, places in lists.
using ObjectPath = std::vector<std::string>;

inline constexpr size_t kMaxPathBytes = 4096;
inline constexpr size_t kMaxAllPathBytes = 16 << 20;

// Counts the paths of a checkpoint, so that a small file does not become long lists.
class PathBounds {
 public:
  // Before a path of so many bytes is made. InvalidArgument: it, or all of them together, are longer than what is read.
  absl::Status Add(size_t bytes);

 private:
  size_t all_ = 0;
};

// The key of the variable there.
std::string VariableKey(const ObjectPath& path);
// The key of a variable that an optimizer keeps for the one at `path`. `optimizer`: the path of the optimizer.
std::string SlotKey(const ObjectPath& path, const ObjectPath& optimizer, absl::string_view slot);
// The path of which a key is the VariableKey; nullopt: it is none, or one of a slot.
std::optional<ObjectPath> PathOfKey(absl::string_view key);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_KEY_H_
