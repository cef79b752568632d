// Evaluates one batch of an evaluation set after another: what the steps of a job and `lockstep eval` share.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_INFERENCE_EVALUATION_PASS_H_
#define LOCKSTEP_WORKER_INFERENCE_EVALUATION_PASS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "common/protocol/evaluation.h"
#include "common/tensor/poison.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_source.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// In PassKey: what is not training draws other numbers than training does, as a shard that no job has.
inline constexpr int64_t kEvaluationShard = 0xffffffff;

class EvaluationPass {
 public:
  struct Options {
    std::vector<SignatureInput> signature;
    bool has_accuracy = false;  // of the graph
    int64_t batch = 0;          // samples
    uint64_t seed = 0;
    bool poison = kPoisonsMemory;  // batches before they are read
  };

  // `plan` is of MakeEvaluationGraph's graph for such a batch and bound; it and `source` outlive the pass. Internal
  // when an input of the plan is fed by no field of the data, or by one of another size.
  static absl::StatusOr<std::unique_ptr<EvaluationPass>> Make(Plan* plan, const DataSource* source, Options options);

  // Of the whole set.
  int64_t batches() const;

  // The sums of batch `index` by the weights as they stand, of which `step` is the step; zeros behind the last batch.
  // Blocks; errors of the plan, Cancelled among them. REQUIRES: the plan's variables are refreshed.
  absl::StatusOr<EvaluationSums> Run(int64_t step, int64_t index);

 private:
  EvaluationPass(Plan* plan, const DataSource* source, Options options)
      : plan_(plan), source_(source), options_(std::move(options)) {}

  Plan* const plan_;
  const DataSource* const source_;
  const Options options_;
  std::vector<int> fields_;  // per input of the plan; kMaskField
  EvalBatch batch_;
};

// The sums of the whole set. They are added up in the order in which a job of so many logical shards adds them: equal
// bits of the batches give equal bits here. Blocks. REQUIRES: as of Run.
absl::StatusOr<EvaluationSums> EvaluateAll(EvaluationPass& pass, int64_t step, int64_t logical_shards);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_EVALUATION_PASS_H_
