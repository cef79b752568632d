// StepRunner, made ready: the tables that the arithmetic of a step goes by, and its memory.
#include <utility>

#include "common/status/status_macros.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Make(StepConfig config, ReplicaState* state,
                                                             const StepPlans& plans, const DataSource* train,
                                                             const DataSource* eval) {
  std::unique_ptr<StepRunner> runner(new StepRunner(std::move(config), state, plans.training, train));
  LS_RETURN_IF_ERROR(runner->FindFields(*train));
  if (plans.evaluation != nullptr) LS_RETURN_IF_ERROR(runner->MakeEvaluation(plans, eval));
  LS_RETURN_IF_ERROR(runner->MakeReader(*train));
  LS_RETURN_IF_ERROR(runner->MakeTables());
  return runner;
}

int StepRunner::slots_per_shard() const {
  int64_t slots = kFirstStatisticSlot;
  for (const int64_t size : statistic_sizes_) slots += size;
  return static_cast<int>(slots);
}

absl::Status StepRunner::MakeTables() {
  const GradientLayout& layout = plan_->gradient_layout();
  GradientExchange::Options options{.layout = layout,
                                    .logical_shards = config_.logical_shards,
                                    .slots_per_shard = slots_per_shard(),
                                    .reduction = config_.metagraph.update.reduction,
                                    .pulse = config_.pulse,
                                    .profiler = config_.profiler,
                                    .device = config_.device,
                                    .stream = &plan_->stream(),
                                    .buckets = {},
                                    .buckets_stay = plan_->keeps_gradients(),
                                    .shared_memory = config_.shared_memory};
  for (size_t b = 0; b < layout.buckets().size(); ++b) {
    options.buckets.push_back(reinterpret_cast<const float*>(plan_->bucket_address(static_cast<int>(b))));
  }
  LS_ASSIGN_OR_RETURN(exchange_, GradientExchange::Make(std::move(options)));
  LS_RETURN_IF_ERROR(MakeUpdateTables());
  return MakeOutputTables();
}

absl::Status StepRunner::MakeUpdateTables() {
  const GradientLayout& layout = plan_->gradient_layout();
  const UpdateRule& rule = config_.metagraph.update;
  std::vector<GradientSum> gradients;
  for (size_t t = 0; t < parameters_.size(); ++t) {
    gradients.push_back({layout.tensors()[t].size, exchange_->gradient(static_cast<int>(t))});
  }
  LS_ASSIGN_OR_RETURN(updates_, ParameterUpdates::Make(rule, math_, *state_, parameters_, gradients));
  if (!rule.clip_global_norm.has_value()) return absl::OkStatus();
  for (const Bucket& bucket : layout.buckets()) {
    std::vector<device::TensorRange> ranges;
    for (int t = bucket.first_tensor; t < bucket.last_tensor; ++t) {
      const FlatRange range = layout.tensors()[static_cast<size_t>(t)];
      ranges.push_back({.begin = range.offset - bucket.range.offset,
                        .size = range.size,
                        .index = declared_order_[static_cast<size_t>(t)]});
    }
    LS_ASSIGN_OR_RETURN(declared_tables_.emplace_back(), math_.MakeTensorTable(ranges));
  }
  LS_ASSIGN_OR_RETURN(
      squares_, device::MirroredBuffer::Make(*config_.device, parameters_.size() * sizeof(double) + sizeof(float)));
  return absl::OkStatus();
}

absl::Status StepRunner::MakeOutputTables() {
  std::vector<device::PassOutput> outputs;
  const auto add = [&](const std::string& name, int64_t size, double divisor) {
    const std::byte* const address = plan_->output_address(plan_->FindOutput(name));
    outputs.push_back({.size = size, .values = reinterpret_cast<const float*>(address), .divisor = divisor});
  };
  add(kLossSum, 1, 1.0);
  add(kLossDenominator, 1, 1.0);
  std::vector<device::StatisticTensor> statistics;
  for (size_t i = 0; i < config_.training.statistics.size(); ++i) {
    const StatisticUpdate& update = config_.training.statistics[i];
    add(update.value, statistic_sizes_[i], static_cast<double>(passes_));
    statistics.push_back({.size = statistic_sizes_[i],
                          .running = state_->floats(state_->layout().Find(update.variable)),
                          .momentum = update.momentum});
  }
  LS_ASSIGN_OR_RETURN(outputs_, math_.MakeOutputTable(outputs));
  if (statistics.empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(statistics_, math_.MakeStatisticTable(statistics));
  const auto elements = static_cast<size_t>(slots_per_shard() - kFirstStatisticSlot);
  LS_ASSIGN_OR_RETURN(means_, device::MirroredBuffer::Make(*config_.device, elements * sizeof(double)));
  return absl::OkStatus();
}

}  // namespace lockstep::worker
