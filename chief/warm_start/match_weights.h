// Which tensor of a source each tensor of a model begins from: by name, under the rules of a job's `model.from`.
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
  std::map<std::string, std::string> rename;  // the source's names, with at most one *, and what the model calls them
  std::vector<std::string> allow_missing;     // of the model's names
  std::vector<std::string> allow_unused;      // of the source's names
};

// A tensor of the model.
struct WantedTensor {
  TensorSpec spec;
  std::string same_as;  // the tensor whose bytes it has under a second name; empty: it stands for itself
  bool of_job = false;  // no weight: the job counts it itself, whatever the source says
};

struct WeightMatch {
  std::map<std::string, size_t> taken;  // by the model's name: index of the source's tensor
  std::vector<std::string> missing;     // of the model's names: the source has none, which a rule allows
  std::vector<std::string> left_out;    // of the model's names: `only` matches none of them
  std::vector<std::string> unused;      // of the source's names: the model has none, which a rule allows
};

// A tensor and its second names need one of them in the source. A tensor of F16 or BF16 serves one of F32, which holds
// all of its values. `second_names`: names under which the source has a tensor besides that of `offered`, and which; it
// needs none of them. `source` is for messages. InvalidArgument names everything that does not fit, and what to do: a
// tensor of the model that the source lacks, one of the source that the model lacks, another shape or type, two names
// that become one, a pattern of `only` or `rename` that nothing matches.
absl::StatusOr<WeightMatch> MatchWeights(absl::Span<const WantedTensor> wanted, absl::Span<const TensorSpec> offered,
                                         const WeightRules& rules, absl::string_view source,
                                         const std::map<std::string, size_t>& second_names = {});

// True when one of the patterns matches the whole name.
bool MatchesAny(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_MATCH_WEIGHTS_H_
