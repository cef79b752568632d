// The keys under which TensorFlow's object-based checkpoints keep variables: the path to the variable from the root of
// the objects, "a/b/.ATTRIBUTES/VARIABLE_VALUE" (docs/formats/tensorflow.md).
//
// Threading: thread-safe (pure functions). PathBounds is thread-compatible.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_KEY_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_KEY_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The edges from the root: names of attributes, keys of dictionaries, indices in lists.
using ObjectPath = std::vector<std::string>;

inline constexpr size_t kMaxPathBytes = 4096;
inline constexpr size_t kMaxAllPathBytes = 16 << 20;

// Limits the total length of a checkpoint's paths, so that a small file cannot expand to huge lists.
class PathBounds {
 public:
  // To be called before a path of `bytes` bytes is made. InvalidArgument when it, or all together, exceed the limits.
  absl::Status Add(size_t bytes);

 private:
  size_t all_ = 0;
};

// The key of the variable at `path`.
std::string VariableKey(const ObjectPath& path);
// The key of the slot variable that the optimizer at the path `optimizer` keeps for the variable at `path`.
std::string SlotKey(const ObjectPath& path, const ObjectPath& optimizer, absl::string_view slot);
// The inverse of VariableKey; nullopt for other keys, such as those of slots.
std::optional<ObjectPath> PathOfKey(absl::string_view key);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_OBJECT_KEY_H_
