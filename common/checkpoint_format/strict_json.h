// An event-driven JSON parser for checkpoint files: duplicate keys, wrong nesting and bad UTF-8 are errors, and nothing
// is allocated beyond what the visitor keeps. nlohmann's own tree would silently keep the last of two equal keys.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_STRICT_JSON_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_STRICT_JSON_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Receives the parts of a document with the keys that lead to them. A status other than OK ends the parse.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  // `path` holds the keys of the objects around a value, outermost first; `in_array` is the depth of arrays in the
  // innermost object's value.
  virtual absl::Status Text(const std::vector<std::string>& path, int in_array, absl::string_view value) = 0;
  virtual absl::Status Unsigned(const std::vector<std::string>& path, int in_array, uint64_t value) = 0;
  // Anything else: negative or fractional numbers, true, false, null.
  virtual absl::Status Other(const std::vector<std::string>& path, int in_array, absl::string_view kind) = 0;
  virtual absl::Status BeginObject(const std::vector<std::string>& path, int in_array) = 0;
  virtual absl::Status EndObject(const std::vector<std::string>& path) = 0;
  virtual absl::Status BeginArray(const std::vector<std::string>& path, int in_array) = 0;
  virtual absl::Status EndArray(const std::vector<std::string>& path) = 0;
};

// Parses one document; blanks may surround it. InvalidArgument with what is wrong and where, or the visitor's status.
absl::Status ParseStrictJson(absl::string_view json, JsonVisitor& visitor);

// OK when the document has no duplicate keys and is well formed.
absl::Status CheckStrictJson(absl::string_view json);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_STRICT_JSON_H_
