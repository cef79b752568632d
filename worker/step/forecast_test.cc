#include "worker/step/forecast.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/graph/build_metagraph.h"

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
  CHECK(training.nodes.size() >= 6);
}

TEST_CASE("forecast: a limit that is not met is refused with what is largest", "[step]") {
  JobSpec job = Job();
  const ReplicaForecast forecast = ForecastReplica(Mlp(), job).value();
  job.mutable_resources()->mutable_cpu_memory()->set_bytes(forecast.total());
  CHECK(ForecastReplica(Mlp(), job).ok());

  job.mutable_resources()->mutable_cpu_memory()->set_bytes(forecast.total() - 1);
  const absl::Status plan = ForecastReplica(Mlp(), job).status();
  job.mutable_resources()->mutable_cpu_memory()->set_bytes(1000);
  const absl::Status state = ForecastReplica(Mlp(), job).status();

  CHECK(absl::IsResourceExhausted(plan));
  CHECK_THAT(std::string(plan.message()), Contains("resources.cpu_memory allows") && Contains("Largest of"));
  CHECK(absl::IsResourceExhausted(state));
}

}  // namespace
}  // namespace lockstep::worker
