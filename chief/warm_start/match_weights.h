// Matches each tensor of a model with a tensor of a weight source: by name, under the rules of a job's `model.from`.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_WARM_START_MATCH_WEIGHTS_H_
#define LOCKSTEP_CHIEF_WARM_START_MATCH_WEIGHTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep::chief {

// Patterns are those of a shell over whole names: * ? [...].
struct WeightRules {
  std::vector<std::string> only;              // of the model's names; empty: all of them
  std::map<std::string, std::string> rename;  // source name patterns, with at most one *, to model names
  std::vector<std::string> allow_missing;     // of the model's names
  std::vector<std::string> allow_unused;      // of the source's names
};

// A tensor of the model.
struct WantedTensor {
  TensorSpec spec;
  std::string same_as;  // the tensor of which this is a second name; empty: none
  bool of_job = false;  // a counter of the job, not a weight: the source's value is ignored
};

struct WeightMatch {
  std::map<std::string, size_t> taken;  // from the model's name to the index in the source
  std::vector<std::string> missing;     // model tensors that the source lacks, as a rule allows
  std::vector<std::string> left_out;    // model tensors that `only` does not match
  std::vector<std::string> unused;      // source tensors that the model lacks, as a rule allows
};

// A tensor and its second names need one match in the source. A tensor of F16 or BF16 may fill one of F32, which holds
// all of its values. `second_names`: further names of tensors in `offered`, by index; they need not be used. `source`
// is for messages. InvalidArgument lists everything that does not fit, and what to do: a tensor of the model that the
// source lacks, one of the source that the model lacks, another shape or type, two names that become one, a pattern of
// `only` or `rename` that matches nothing.
absl::StatusOr<WeightMatch> MatchWeights(absl::Span<const WantedTensor> wanted, absl::Span<const TensorSpec> offered,
                                         const WeightRules& rules, absl::string_view source,
                                         const std::map<std::string, size_t>& second_names = {});

// Whether one of the patterns matches the whole name.
bool MatchesAny(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_MATCH_WEIGHTS_H_
