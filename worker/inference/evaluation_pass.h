// Evaluates a model on an evaluation set, batch by batch, for the evaluations of a job and for `lockstep eval`.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_INFERENCE_EVALUATION_PASS_H_
#define LOCKSTEP_WORKER_INFERENCE_EVALUATION_PASS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/protocol/evaluation.h"
#include "common/tensor/poison.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_source.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// PassKey::logical_shard outside of training: no job has this shard, so random numbers differ from those of training.
inline constexpr int64_t kEvaluationShard = 0xffffffff;

class EvaluationPass {
 public:
  struct Options {
    std::vector<SignatureInput> signature;
    bool has_accuracy = false;  // the graph computes accuracy
    int64_t batch = 0;          // samples
    uint64_t seed = 0;
    bool poison = kPoisonsMemory;  // poisons batches before they are read
  };

  // `plan` is bound and made from MakeEvaluationGraph's graph for options.batch. `rest` is one for the samples behind
  // the last full batch (RestOfSamples), which it computes alone; if null, the last batch is filled up. Both and
  // `source` outlive the pass. Internal when no field of the data feeds an input of a plan, or one of another size.
  static absl::StatusOr<std::unique_ptr<EvaluationPass>> Make(Plan* plan, Plan* rest, const DataSource* source,
                                                              Options options);

  // The one or two plans.
  absl::Span<Plan* const> plans() const { return plans_; }

  // Plan::RefreshVariables of all plans.
  absl::Status RefreshVariables();

  // The number of batches of the whole set.
  int64_t batches() const;

  // Computes the sums of batch `index` with the current weights, which are of step `step`; zeros beyond the last batch.
  // Blocks; errors of the plan, Cancelled among them. REQUIRES: RefreshVariables was called for these weights.
  absl::StatusOr<EvaluationSums> Run(int64_t step, int64_t index);

 private:
  EvaluationPass(std::vector<Plan*> plans, const DataSource* source, Options options)
      : plans_(std::move(plans)), source_(source), options_(std::move(options)) {}

  // Samples of a pass of plans_[plan].
  int64_t SamplesOf(size_t plan) const { return plan == 0 ? options_.batch : RestOfSamples(*source_, options_.batch); }

  const std::vector<Plan*> plans_;  // of full batches, and of the rest
  const DataSource* const source_;
  const Options options_;
  std::vector<std::vector<int>> fields_;  // per plan and input of it, or kMaskField
  std::vector<EvalBatch> batches_;        // per plan
};

// The sums of the whole set, added in the order in which a job with `logical_shards` adds them, so that the result has
// the job's bits. Blocks. REQUIRES: as Run.
absl::StatusOr<EvaluationSums> EvaluateAll(EvaluationPass& pass, int64_t step, int64_t logical_shards);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_EVALUATION_PASS_H_
