#include "worker/inference/predictor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/passes/prediction_graph.h"
#include "common/graph/passes/samples_apart.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/inference/evaluation_pass.h"
#include "worker/inference/input_fields.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Make(device::Device& device, const MetaGraph& metagraph,
                                                           const ReadVariable& read, const DataSource& source,
                                                           Options options) {
  const int64_t batch = options.batch, rest = RestOfSamples(source, batch);
  LS_ASSIGN_OR_RETURN(const Graph full, MakePredictionGraph(metagraph, options.output, batch));
  LS_ASSIGN_OR_RETURN(DeviceWeights weights, DeviceWeights::Load(device, full.variables, read));
  std::unique_ptr<Predictor> predictor(new Predictor(std::move(weights), source, std::move(options)));
  LS_RETURN_IF_ERROR(predictor->AddPass(device, metagraph, full, batch));
  if (rest > 0 && (OnlyBatch(metagraph.forward) != 0 || !SamplesAreApart(full, batch))) {
    const absl::StatusOr<Graph> alone = MakePredictionGraph(metagraph, predictor->options_.output, rest);
    if (!alone.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the last ", rest, " of ", source.num_samples(), " samples have to be computed by themselves, and the model ",
          "does not compute with so few: ", alone.status().message(), ". Predict a multiple of ", batch,
          " samples, or choose a --batch that divides them"));
    }
    LS_RETURN_IF_ERROR(predictor->AddPass(device, metagraph, *alone, rest));
  }
  return predictor;
}

absl::Status Predictor::AddPass(device::Device& device, const MetaGraph& metagraph, const Graph& graph,
                                int64_t samples) {
  Pass pass{.samples = samples};
  LS_ASSIGN_OR_RETURN(pass.plan, Plan::Make(&device, graph, weights_.addresses(), {.label = "prediction"}));
  LS_ASSIGN_OR_RETURN(pass.fields, InputFields(*pass.plan, metagraph.signature, source_, samples));
  LS_RETURN_IF_ERROR(pass.plan->RefreshVariables());
  TensorSpec rows = pass.plan->outputs()[0];
  LS_CHECK(!rows.shape.empty() && rows.shape[0] == samples, "a prediction has one row per sample");
  rows.shape.erase(rows.shape.begin());
  passes_.push_back(std::move(pass));
  if (passes_.size() > 1) {
    LS_CHECK(rows.shape == row_.shape, "a row is the same in all passes");
    return absl::OkStatus();
  }
  row_ = std::move(rows);
  rows_.resize(static_cast<size_t>(row_bytes() * samples));
  return absl::OkStatus();
}

int64_t Predictor::row_bytes() const { return NumElements(row_.shape) * DTypeSize(row_.dtype); }

int64_t Predictor::batches() const { return NumEvalBatches(source_, options_.batch); }

absl::StatusOr<absl::Span<const std::byte>> Predictor::Run(int64_t index) {
  const int64_t first = index * options_.batch;
  Pass& pass = first + options_.batch <= source_.num_samples() ? passes_.front() : passes_.back();
  LS_RETURN_IF_ERROR(ReadEvalBatch(source_, first, pass.samples, pass.batch));
  LS_RETURN_IF_ERROR(pass.plan->RunPass(
      InputsOf(pass.fields, pass.batch),
      {.seed = options_.seed, .step = options_.step, .logical_shard = kEvaluationShard, .pass = index}));
  const absl::Span<std::byte> rows = absl::MakeSpan(rows_).first(static_cast<size_t>(pass.samples * row_bytes()));
  LS_RETURN_IF_ERROR(pass.plan->ReadOutput(0, rows));
  return rows.first(static_cast<size_t>(pass.batch.valid * row_bytes()));
}

}  // namespace lockstep::worker
