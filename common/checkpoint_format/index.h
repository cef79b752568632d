// The Hugging Face index of a sharded checkpoint: which file holds which tensor (docs/formats/index.md).
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_INDEX_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_INDEX_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

struct ShardIndex {
  uint64_t total_size = 0;                        // bytes of all tensors
  std::map<std::string, std::string> weight_map;  // tensor → base name of its file
};

// JSON as `transformers` writes it: two spaces of indentation, sorted names, a final newline.
std::string EncodeShardIndex(const ShardIndex& index);

// DataLoss on anything malformed: duplicate keys, unknown fields, a file name that is not a base name. `file` is used
// in messages.
absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view json, absl::string_view file);

// Checks an index against the tensors found in each file, both ways, and the total. DataLoss names the first
// difference.
absl::Status CheckShardIndex(const ShardIndex& index, const std::map<std::string, std::set<std::string>>& found,
                             uint64_t total_size, absl::string_view file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_INDEX_H_
