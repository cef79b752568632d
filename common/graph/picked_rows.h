// The valid index range of an integer input that feeds Gather. The kernel of Gather cannot refuse an index, so the
// reader of the data does.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_GRAPH_PICKED_ROWS_H_
#define LOCKSTEP_COMMON_GRAPH_PICKED_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

struct IndexRange {
  int64_t lowest = 0;
  int64_t highest = 0;
  std::string of;  // what has so many, for messages

  bool Holds(int64_t index) const { return index >= lowest && index <= highest; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// The range of an input that picks rows of variables or constants by Gather along axis 0; negative indices count from
// the end. nullopt when `input` picks no rows, or is changed before it does.
std::optional<IndexRange> PickedRows(const Graph& graph, absl::string_view input);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PICKED_ROWS_H_
