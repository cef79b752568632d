#include "worker/step/forecast.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

MetaGraph Mlp() {
  MetaGraphRequest request;
  request.model.architecture = "mlp";
  request.model.outputs = 10;
  request.model.hidden_sizes = {64};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 100}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 256;
  return BuildMetaGraph(request).value();
}

JobSpec Job() {
  JobSpec job;
  job.mutable_train()->set_global_batch_size(1024);
  job.mutable_train()->set_logical_shards(4);
  job.mutable_resources()->set_cpu_threads(1);
  return job;
}

TEST_CASE("forecast: a job's memory is the state, its snapshots and the plans", "[step]") {
  JobSpec job = Job();
  const ReplicaForecast training = ForecastReplica(Mlp(), job).value();
  job.mutable_data()->mutable_eval();

  const ReplicaForecast both = ForecastReplica(Mlp(), job).value();

  CHECK(training.state_bytes >= (100 * 64 + 64 + 64 * 10 + 10) * 4);
  CHECK(training.snapshot_bytes == kSnapshotBuffers * training.state_bytes);
  CHECK(training.training.arena >= 256 * 100 * 4);  // at least one batch
  CHECK(training.evaluation.total() == 0);
  CHECK(both.evaluation.total() > 0);
  CHECK(both.total() > training.total());
  CHECK(training.steps.size() >= 6);
}

// Scores that are centred over the batch.
MetaGraph Centred() {
  MetaGraphRequest request;
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, 100}}};
  graph.variables = {{"weight", DType::kF32, {100, 10}, VariableKind::kParameter, {}}};
  graph.nodes = {{"layer", OpType::kMatMul, {"x", "weight"}, {"y"}, NoAttributes{}},
                 {"mean", OpType::kReduceMean, {"y"}, {"mean"}, ReduceAttributes{{0}, true, false}},
                 {"centre", OpType::kSub, {"y", "mean"}, {"scores"}, NoAttributes{}}};
  graph.outputs = {"scores"};
  request.imported = graph;
  request.inputs = {{"x", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 100}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 256;
  return BuildMetaGraph(request).value();
}

TEST_CASE("forecast: the plan for the last samples of an evaluation counts, where they need one", "[step]") {
  JobSpec job = Job();
  job.mutable_data()->mutable_eval();
  const auto needs = [&](const MetaGraph& metagraph, int64_t samples) {
    const ReplicaForecast forecast = ForecastWorker(metagraph, job, {.eval_samples = samples}).value();
    return forecast.evaluation.total() + forecast.batch_bytes;
  };

  const int64_t full = needs(Centred(), 512);
  // 100 samples more of 100 features, in the batch and in the plan.
  CHECK(needs(Centred(), 612) >= full + 2 * 100 * 100 * 4);
  CHECK(needs(Centred(), 612) < full + needs(Centred(), 256));
  // Those of other models fill the pass up.
  CHECK(needs(Mlp(), 612) == needs(Mlp(), 512));
}

TEST_CASE("forecast: a limit that is not met is refused with what is largest and the largest micro-batch that fits",
          "[step]") {
  JobSpec job = Job();
  const ReplicaForecast forecast = ForecastReplica(Mlp(), job).value();
  job.mutable_resources()->mutable_cpu_memory()->set_bytes(forecast.total());
  CHECK(ForecastReplica(Mlp(), job).ok());
  MetaGraph by_64 = Mlp();
  by_64.pass_batch = 64;
  JobSpec fitting = Job();
  fitting.mutable_train()->set_micro_batch(64);
  const int64_t enough = ForecastReplica(by_64, fitting).value().total();
  REQUIRE(enough < forecast.total());

  job.mutable_resources()->mutable_cpu_memory()->set_bytes(enough);
  const absl::Status refused = ForecastReplica(Mlp(), job).status();
  fitting.mutable_resources()->mutable_cpu_memory()->set_bytes(enough);

  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()), Contains("resources.cpu_memory allows") && Contains("Largest of"));
  CHECK_THAT(std::string(refused.message()), Contains(absl::StrCat("`train.micro_batch: 64` (", enough, " bytes)")));
  CHECK(ForecastReplica(by_64, fitting).ok());
}

TEST_CASE("forecast: copies of audited states count where there is room, and are the first to go", "[step]") {
  JobSpec job = Job();
  const ReplicaForecast alone = ForecastReplica(Mlp(), job).value();
  job.mutable_cluster()->mutable_workers()->set_max(3);
  const ReplicaForecast several = ForecastReplica(Mlp(), job).value();

  CHECK(alone.kept_bytes == 0);
  CHECK(several.kept_bytes == kKeptCopies * several.state_bytes);
  CHECK(several.total() == alone.total() + several.kept_bytes);
  job.mutable_resources()->mutable_cpu_memory()->set_bytes(several.total());
  CHECK(ForecastReplica(Mlp(), job).value().kept_bytes == several.kept_bytes);
  job.mutable_resources()->mutable_cpu_memory()->set_bytes(several.total() - 1);
  CHECK(ForecastReplica(Mlp(), job).value().kept_bytes == 0);
}

TEST_CASE("forecast: where no micro-batch fits, what the smallest needs is said", "[step]") {
  JobSpec job = Job();
  job.mutable_resources()->mutable_cpu_memory()->set_bytes(1000);

  const absl::Status refused = ForecastReplica(Mlp(), job).status();

  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()), Contains("Even `train.micro_batch: 1` needs"));
}

TEST_CASE("forecast: computing blocks again needs less, and is named where it is enough", "[step]") {
  MetaGraphRequest request;
  request.model = {.architecture = "gpt2", .layers = 6, .heads = 2, .width = 64, .context = 64, .vocabulary = 32};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, DType::kI64, {kBatchDim, 64}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, 64}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 16;
  const MetaGraph metagraph = BuildMetaGraph(request).value();
  JobSpec job = Job();
  job.mutable_train()->set_global_batch_size(16);
  job.mutable_train()->set_logical_shards(1);
  const ReplicaForecast none = ForecastReplica(metagraph, job).value();
  job.mutable_train()->set_recompute(job::Train::RECOMPUTE_BLOCKS);
  const ReplicaForecast blocks = ForecastReplica(metagraph, job).value();

  CHECK(blocks.training.arena * 10 < none.training.arena * 7);

  job.mutable_resources()->mutable_cpu_memory()->set_bytes(blocks.total());
  CHECK(ForecastReplica(metagraph, job).ok());
  job.mutable_train()->set_recompute(job::Train::RECOMPUTE_NONE);
  const absl::Status refused = ForecastReplica(metagraph, job).status();
  CHECK_THAT(std::string(refused.message()),
             Contains(absl::StrCat("`train.recompute: blocks` fits (", blocks.total(), " bytes)")));
}

TEST_CASE("forecast: sums over shards and batches that are read ahead count", "[step]") {
  JobSpec job = Job();
  const ReplicaForecast several = ForecastReplica(Mlp(), job).value();
  job.mutable_train()->set_global_batch_size(256);
  job.mutable_train()->set_logical_shards(1);
  const ReplicaForecast one = ForecastReplica(Mlp(), job).value();

  CHECK(several.exchange_bytes >= (100 * 64 + 64 + 64 * 10 + 10) * 12);
  CHECK(one.exchange_bytes == 0);
  CHECK(one.batch_bytes == 3 * 256 * (100 * 4 + 8));
}

}  // namespace
}  // namespace lockstep::worker
