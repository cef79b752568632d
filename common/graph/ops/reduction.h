// The names of Reduction in files: "none", "sum", "mean".
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_REDUCTION_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_REDUCTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/graph/ops/cross_entropy.h"

namespace lockstep {

inline std::string ReductionName(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return "none";
    case Reduction::kSum:
      return "sum";
    case Reduction::kMean:
      return "mean";
  }
  return "";
}

// InvalidArgument for any other name.
inline absl::StatusOr<Reduction> ParseReduction(const std::string& name) {
  for (const Reduction reduction : {Reduction::kNone, Reduction::kSum, Reduction::kMean}) {
    if (ReductionName(reduction) == name) return reduction;
  }
  return absl::InvalidArgumentError(absl::StrCat("reduction '", name, "' is neither none, sum nor mean"));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_REDUCTION_H_
