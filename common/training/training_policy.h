// Derives from a job and the size of its data: evaluation batches, the last step, and when the boundary work of rule 2
// is due. Chief and workers compute the same values.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TRAINING_TRAINING_POLICY_H_
#define LOCKSTEP_COMMON_TRAINING_TRAINING_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/ops/ir.h"
#include "common/job/job.h"
#include "common/protocol/messages.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// A sample that is an image, as the model sees it: channels one after another, row by row.
struct SampleImage {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

// The facts about the data that the chief needs. Shapes are those of one sample, without the batch.
struct DataFacts {
  int64_t train_samples = 0;
  int64_t eval_samples = 0;        // 0: no evaluation set
  std::vector<TensorSpec> inputs;  // named as the model's inputs; a single one "inputs"
  TensorSpec labels;
  // Hashes of the decoded data (rule 32), for the resolved job; empty where there is none.
  std::string train_sha256 = {};
  std::string eval_sha256 = {};
  std::vector<std::string> classes = {};  // names of the classes, if the data has them
  int64_t held_bytes = 0;                 // memory of the decoded data in every worker
  std::vector<SampleImage> images = {};   // the first samples of the training set, where they are images
};

// Samples of one evaluation batch. A slice is one such batch per logical shard.
int64_t EvalBatch(const JobSpec& spec);
// The number of slices that cover `eval_samples`.
int64_t EvalSlices(const JobSpec& spec, int64_t eval_samples);

// TrainingPolicy::settings: a hash of the settings that may change at a resume and that a worker builds into its
// replica (what is evaluated, the texts it writes, and the tensors that hooks look at).
std::string MadeWithSettings(const JobSpec& spec);

// InvalidArgument when the job's duration amounts to no step. A duration given as a time leaves end_step at its
// maximum.
absl::StatusOr<TrainingPolicy> MakeTrainingPolicy(const JobSpec& spec, const DataFacts& facts);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRAINING_TRAINING_POLICY_H_
