// From stage 1 to stage 2: the model, data and train sections of a job as the request that the metagraph is built from.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_GRAPH_REQUEST_H_
#define LOCKSTEP_COMMON_JOB_GRAPH_REQUEST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/graph/build_metagraph.h"
#include "common/graph/metagraph.h"
#include "common/job/job.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// The request for the job's metagraph. `inputs` and `labels` describe one sample as the data source delivers it,
// without the batch. The signature's feature is named "inputs", its label "labels", as the fields of the source; its
// shape is `model.builtin.input`, else that of the data, to which `lenet` adds the channel of a [height, width].
// InvalidArgument when the shape of the job is not that of the data, or a schedule does not fit the duration.
// `imported`: the graph of `model.onnx`, null for a built-in architecture; the feature is then named as its input.
absl::StatusOr<MetaGraphRequest> MakeMetaGraphRequest(const JobSpec& spec, const Graph* imported,
                                                      const TensorSpec& inputs, const TensorSpec& labels,
                                                      int64_t train_samples);

// The update of a job: optimizer, schedule in steps, clipping, what a NaN does. InvalidArgument when the warm-up does
// not end before the job does.
absl::StatusOr<UpdateRule> MakeUpdateRule(const JobSpec& spec, int64_t train_samples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_GRAPH_REQUEST_H_
