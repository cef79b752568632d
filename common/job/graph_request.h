// From stage 1 to stage 2: the model, data and train sections of a job as the request that the metagraph is built from.
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

// What the job's model takes, as far as that is known before the data is opened: the inputs of `imported`, the tokens
// of a built-in language model, the stated input of another one; nothing for built-in architectures that adapt to the
// data.
std::vector<GraphInput> KnownInputs(const JobSpec& spec, const Graph* imported);

// Which numbers the model takes at `input` of KnownInputs, when it picks rows by them.
std::optional<IndexRange> KnownRange(const JobSpec& spec, const Graph* imported, const std::string& input);

// The request for the job's metagraph. `inputs` and `labels` describe one sample as the data source delivers it,
// without the batch, and `labels` without a name is for data that has none; a single input feeds the model's only one,
// several feed those of their names. `imported`: the graph of `model.onnx`; null for a built-in architecture, whose
// input is called "inputs" and has the shape `model.builtin.input`, else that of the data, to which `lenet` adds the
// channel of a [height, width]. Shapes have to be those of the data but for dimensions of 1; an `mlp` flattens what it
// gets. InvalidArgument when the shape of the job is not that of the data, or a schedule does not fit the duration.
absl::StatusOr<MetaGraphRequest> MakeMetaGraphRequest(const JobSpec& spec, const Graph* imported,
                                                      absl::Span<const TensorSpec> inputs, const TensorSpec& labels,
                                                      int64_t train_samples);

// The graph of a resolved built-in model alone, with the input called `input`. InvalidArgument when the architecture
// needs the shape of a sample and it is not stated.
absl::StatusOr<Graph> BuildBuiltin(const job::BuiltinModel& builtin, const std::string& input);

// The update of a job: optimizer, schedule in steps, clipping, what a NaN does. InvalidArgument when the warm-up does
// not end before the job does.
absl::StatusOr<UpdateRule> MakeUpdateRule(const JobSpec& spec, int64_t train_samples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_GRAPH_REQUEST_H_
