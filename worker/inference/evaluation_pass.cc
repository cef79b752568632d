#include "worker/inference/evaluation_pass.h"

#include <cstddef>
#include <utility>

#include "common/graph/passes/training_graph.h"
#include "common/status/status_macros.h"
#include "worker/inference/input_fields.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<EvaluationPass>> EvaluationPass::Make(Plan* plan, Plan* rest, const DataSource* source,
                                                                     Options options) {
  std::vector<Plan*> plans = {plan};
  if (rest != nullptr) plans.push_back(rest);
  std::unique_ptr<EvaluationPass> pass(new EvaluationPass(std::move(plans), source, std::move(options)));
  for (size_t i = 0; i < pass->plans_.size(); ++i) {
    LS_ASSIGN_OR_RETURN(pass->fields_.emplace_back(),
                        InputFields(*pass->plans_[i], pass->options_.signature, *source, pass->SamplesOf(i)));
    pass->batches_.emplace_back().poison = pass->options_.poison;
  }
  return pass;
}

absl::Status EvaluationPass::RefreshVariables() {
  for (Plan* const plan : plans_) LS_RETURN_IF_ERROR(plan->RefreshVariables());
  return absl::OkStatus();
}

int64_t EvaluationPass::batches() const { return NumEvalBatches(*source_, options_.batch); }

absl::StatusOr<EvaluationSums> EvaluationPass::Run(int64_t step, int64_t index) {
  if (index >= batches()) return EvaluationSums{};
  const int64_t first = index * options_.batch;
  const bool full = first + options_.batch <= source_->num_samples();
  const size_t used = full ? 0 : plans_.size() - 1;
  Plan& plan = *plans_[used];
  LS_RETURN_IF_ERROR(ReadEvalBatch(*source_, first, SamplesOf(used), batches_[used]));
  LS_RETURN_IF_ERROR(
      plan.RunPass(InputsOf(fields_[used], batches_[used]),
                   {.seed = options_.seed, .step = step, .logical_shard = kEvaluationShard, .pass = index}));
  float losses[2] = {};
  int64_t counts[3] = {};
  std::vector<Plan::OutputRead> reads;
  const auto read = [&](const char* name, auto& value) {
    reads.push_back({plan.FindOutput(name), {reinterpret_cast<std::byte*>(&value), sizeof value}});
  };
  read(kLossSum, losses[0]);
  read(kLossDenominator, losses[1]);
  if (options_.has_accuracy) {
    read(kCorrectCount, counts[0]);
    read(kTop5Count, counts[1]);
    read(kLabelCount, counts[2]);
  }
  LS_RETURN_IF_ERROR(plan.ReadOutputs(reads));
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
