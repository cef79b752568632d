// Which field of the data feeds which input of a plan.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_INFERENCE_INPUT_FIELDS_H_
#define LOCKSTEP_WORKER_INFERENCE_INPUT_FIELDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_source.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// In place of a field: the mask of an evaluation (kMaskInput).
inline constexpr int kMaskField = -1;

// The field of `source` that feeds each input of a plan for passes of `batch` samples, in the order of plan.inputs().
// Internal when one is fed by nothing, or by a field of another size.
absl::StatusOr<std::vector<int>> InputFields(const Plan& plan, absl::Span<const SignatureInput> signature,
                                             const DataSource& source, int64_t batch);

// What a pass reads of `batch`, by those fields.
std::vector<InputBytes> InputsOf(absl::Span<const int> fields, const EvalBatch& batch);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_INPUT_FIELDS_H_
