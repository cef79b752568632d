#include "worker/inference/predictor.h"

#include <utility>

#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/inference/evaluation_pass.h"
#include "worker/inference/input_fields.h"

namespace lockstep::worker {

Predictor::Predictor(DeviceWeights weights, std::unique_ptr<Plan> plan, const DataSource& source, Options options)
    : weights_(std::move(weights)), plan_(std::move(plan)), source_(source), options_(std::move(options)) {
  row_ = plan_->outputs()[0];
  LS_CHECK(!row_.shape.empty() && row_.shape[0] == options_.batch, "a prediction has one row per sample");
  row_.shape.erase(row_.shape.begin());
  rows_.resize(static_cast<size_t>(row_bytes() * options_.batch));
}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Make(device::Device& device, const Graph& graph,
                                                           const ReadVariable& read, const DataSource& source,
                                                           Options options) {
  LS_ASSIGN_OR_RETURN(DeviceWeights weights, DeviceWeights::Load(device, graph.variables, read));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                      Plan::Make(&device, graph, weights.addresses(), {.label = "prediction"}));
  std::unique_ptr<Predictor> predictor(new Predictor(std::move(weights), std::move(plan), source, std::move(options)));
  const Options& made = predictor->options_;
  LS_ASSIGN_OR_RETURN(predictor->fields_, InputFields(*predictor->plan_, made.signature, source, made.batch));
  LS_RETURN_IF_ERROR(predictor->plan_->RefreshVariables());
  return predictor;
}

int64_t Predictor::row_bytes() const { return NumElements(row_.shape) * DTypeSize(row_.dtype); }

int64_t Predictor::batches() const { return NumEvalBatches(source_, options_.batch); }

absl::StatusOr<absl::Span<const std::byte>> Predictor::Run(int64_t index) {
  LS_RETURN_IF_ERROR(ReadEvalBatch(source_, options_.batch, index, batch_));
  LS_RETURN_IF_ERROR(
      plan_->RunPass(InputsOf(fields_, batch_),
                     {.seed = options_.seed, .step = options_.step, .logical_shard = kEvaluationShard, .pass = index}));
  LS_RETURN_IF_ERROR(plan_->ReadOutput(0, absl::MakeSpan(rows_)));
  return absl::MakeConstSpan(rows_).first(static_cast<size_t>(batch_.valid * row_bytes()));
}

}  // namespace lockstep::worker
