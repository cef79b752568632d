// From stage 1 to stage 2: turns the model, data and train sections of a job into the request from which the metagraph
// is built.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_GRAPH_REQUEST_H_
#define LOCKSTEP_COMMON_JOB_GRAPH_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/metagraph.h"
#include "common/graph/picked_rows.h"
#include "common/job/job.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// The inputs of the job's model as far as they are known before the data is opened: those of `imported`, the tokens of
// a built-in language model, or the input that the job states; empty for built-in architectures that adapt to the data.
std::vector<GraphInput> KnownInputs(const JobSpec& spec, const Graph* imported);

// The index range of `input`, one of KnownInputs, when the model picks rows by its elements.
std::optional<IndexRange> KnownRange(const JobSpec& spec, const Graph* imported, const std::string& input);

// The request for the job's metagraph. `inputs` and `labels` describe one sample as the data source delivers it,
// without the batch; data without labels has `labels` without a name. A single input feeds the model's only one,
// several feed the inputs of the same names. `imported` is the graph of `model.onnx`; null for a built-in architecture,
// whose input is called "inputs" and has the shape `model.builtin.input`, else that of the data, to which `lenet` adds
// a channel dimension where it is [height, width]. Model and data must have the same shapes except for dimensions of 1;
// an `mlp` flattens its input. InvalidArgument when the shape of the job is not that of the data, or a schedule does
// not fit the duration.
absl::StatusOr<MetaGraphRequest> MakeMetaGraphRequest(const JobSpec& spec, const Graph* imported,
                                                      absl::Span<const TensorSpec> inputs, const TensorSpec& labels,
                                                      int64_t train_samples);

// The forward graph of a resolved built-in model, with the input called `input`. InvalidArgument when the architecture
// needs the shape of a sample and it is not stated.
absl::StatusOr<Graph> BuildBuiltin(const job::BuiltinModel& builtin, const std::string& input);

// The update rule of a job: optimizer, schedule in steps, clipping, and the reaction to NaN. InvalidArgument when the
// warm-up does not end before the job does.
absl::StatusOr<UpdateRule> MakeUpdateRule(const JobSpec& spec, int64_t train_samples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_GRAPH_REQUEST_H_
