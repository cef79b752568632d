#include "common/graph/passes/countable.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::Status CheckCountable(const Graph& graph) {
  constexpr int64_t kMostBytes = int64_t{1} << 56;
  int64_t total = 0;  // each value was counted alone
  for (const auto& [name, info] : graph.values) {
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(info.dtype, info.shape));
    if (bytes > kMostBytes - total) {
      return absl::InvalidArgumentError(absl::StrCat("the values of a pass have more than ", kMostBytes, " bytes, '",
                                                     name, "' ", ShapeString(info.shape),
                                                     " among them; no machine has as many"));
    }
    total += bytes;
  }
  return absl::OkStatus();
}

}  // namespace lockstep
