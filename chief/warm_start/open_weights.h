// Opens the weights that `model.from` names: a checkpoint of a job, a file of safetensors, a folder of such files as
// Hugging Face lays them out, or a TensorFlow V2 checkpoint; in a directory or in a bucket.
//
// Threading: thread-safe; blocks on the storage.
#ifndef LOCKSTEP_CHIEF_WARM_START_OPEN_WEIGHTS_H_
#define LOCKSTEP_CHIEF_WARM_START_OPEN_WEIGHTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "chief/warm_start/weight_source.h"
#include "protos/job.pb.h"

namespace lockstep::chief {

// Opens what `from` names; reads no tensor of it yet. NotFound: no weights are there. InvalidArgument: they are in
// another format, or a key of `from` does not apply to them. DataLoss: they are damaged. Else codes of the storage.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenWeights(const job::WarmStart& from);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_OPEN_WEIGHTS_H_
