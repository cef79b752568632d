// Maps the inputs of a plan to the fields of the data that feed them.
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
#include "worker/data/mixing.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// Stands for the evaluation mask (kMaskInput) in place of a field.
inline constexpr int kMaskField = -1;

// The field of `source`, or behind those of `mixing`, for each input of a plan for passes of `batch` samples, in the
// order of plan.inputs(). Internal when an input has no field, or one of another size.
absl::StatusOr<std::vector<int>> InputFields(const Plan& plan, absl::Span<const SignatureInput> signature,
                                             const DataSource& source, int64_t batch, const Mixing* mixing = nullptr);

// The bytes of `batch` for each input of a pass; `fields` is InputFields' result.
std::vector<InputBytes> InputsOf(absl::Span<const int> fields, const EvalBatch& batch);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_INPUT_FIELDS_H_
