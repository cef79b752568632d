// The model variables of a TensorFlow V2 checkpoint as initial weights (docs/formats/tensorflow.md), without the
// variables of optimizers.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_WARM_START_TENSORFLOW_WEIGHTS_H_
#define LOCKSTEP_CHIEF_WARM_START_TENSORFLOW_WEIGHTS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/warm_start/weight_source.h"
#include "common/job_place/job_place.h"
#include "protos/job.pb.h"

namespace lockstep::chief {

// Opens the checkpoint `prefix` within `place`. InvalidArgument: a variable that `from.allow_unused` does not name is
// partitioned or has a type that no job supports; else as BundleReader::Open (NotFound: a file is missing),
// BundleReader::ReadString and VariableNames.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenTensorflowWeights(const job::WarmStart& from,
                                                                    std::unique_ptr<JobPlace> place,
                                                                    absl::string_view prefix);

// The prefix, within `storage`, of the newest checkpoint according to the file `checkpoint`. NotFound: there is no such
// file, or no index of that prefix. DataLoss: the file names none, or is larger than kMaxCheckpointStateBytes.
// InvalidArgument: it names one that cannot be in this folder.
absl::StatusOr<std::string> NewestTensorflowCheckpoint(const Storage& storage);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_TENSORFLOW_WEIGHTS_H_
