#include "worker/inference/evaluation_pass.h"

#include <cstddef>
#include <utility>

#include "common/graph/passes/training_graph.h"
#include "common/status/status_macros.h"
#include "worker/inference/input_fields.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<EvaluationPass>> EvaluationPass::Make(Plan* plan, const DataSource* source,
                                                                     Options options) {
  std::unique_ptr<EvaluationPass> pass(new EvaluationPass(plan, source, std::move(options)));
  LS_ASSIGN_OR_RETURN(pass->fields_, InputFields(*plan, pass->options_.signature, *source, pass->options_.batch));
  pass->batch_.poison = pass->options_.poison;
  return pass;
}

int64_t EvaluationPass::batches() const { return NumEvalBatches(*source_, options_.batch); }

absl::StatusOr<EvaluationSums> EvaluationPass::Run(int64_t step, int64_t index) {
  if (index >= batches()) return EvaluationSums{};
  LS_RETURN_IF_ERROR(ReadEvalBatch(*source_, options_.batch, index, batch_));
  LS_RETURN_IF_ERROR(
      plan_->RunPass(InputsOf(fields_, batch_),
                     {.seed = options_.seed, .step = step, .logical_shard = kEvaluationShard, .pass = index}));
  float losses[2] = {};
  int64_t counts[3] = {};
  std::vector<Plan::OutputRead> reads;
  const auto read = [&](const char* name, auto& value) {
    reads.push_back({plan_->FindOutput(name), {reinterpret_cast<std::byte*>(&value), sizeof value}});
  };
  read(kLossSum, losses[0]);
  read(kLossDenominator, losses[1]);
  if (options_.has_accuracy) {
    read(kCorrectCount, counts[0]);
    read(kTop5Count, counts[1]);
    read(kLabelCount, counts[2]);
  }
  LS_RETURN_IF_ERROR(plan_->ReadOutputs(reads));
  return EvaluationSums{.loss = losses[0],
                        .denominator = losses[1],
                        .correct = static_cast<double>(counts[0]),
                        .top5 = static_cast<double>(counts[1]),
                        .counted = static_cast<double>(counts[2])};
}

absl::StatusOr<EvaluationSums> EvaluateAll(EvaluationPass& pass, int64_t step, int64_t logical_shards) {
  EvaluationSums all;
  for (int64_t first = 0; first < pass.batches(); first += logical_shards) {
    EvaluationSums slice;
    for (int64_t shard = 0; shard < logical_shards; ++shard) {
      LS_ASSIGN_OR_RETURN(const EvaluationSums batch, pass.Run(step, first + shard));
      slice += batch;
    }
    all += slice;
  }
  return all;
}

}  // namespace lockstep::worker
