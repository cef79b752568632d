// The limits of a device with memory of its own, on a machine whose GPUs are invented.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"
#include "worker/step/forecast.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

MetaGraph Mlp(int64_t pass_batch) {
  MetaGraphRequest request;
  request.model.architecture = "mlp";
  request.model.outputs = 10;
  request.model.hidden_sizes = {64};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 100}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = pass_batch;
  return BuildMetaGraph(request).value();
}

JobSpec Job() {
  // Once per process: what the machine looks like stays.
  setenv("LOCKSTEP_CUDA_LIBRARY", "worker/fakes/fake_cuda_library.so", 1);
  setenv("LOCKSTEP_FAKE_MEMORY", "4000000", 1);
  JobSpec job;
  job.mutable_train()->set_global_batch_size(1024);
  job.mutable_train()->set_logical_shards(4);
  job.mutable_resources()->set_cpu_threads(1);
  job.mutable_resources()->set_device(job::Resources::DEVICE_CUDA);
  return job;
}

TEST_CASE("forecast: state, plans and sums lie on the GPU, snapshots and batches in the host's memory", "[step]") {
  const ReplicaForecast forecast = ForecastReplica(Mlp(256), Job()).value();

  CHECK(forecast.device_memory == 2000000);  // what is free
  // 256 samples of 100 floats and a label, each input at a multiple of 256 bytes.
  CHECK(forecast.input_bytes == 256 * 100 * 4 + 256 * 8);
  CHECK(forecast.device_total() ==
        forecast.training.total() + forecast.state_bytes + forecast.exchange_bytes + forecast.input_bytes);
  CHECK(forecast.host_copy_bytes == forecast.state_bytes + forecast.exchange_bytes);
  CHECK(forecast.host_total() == forecast.snapshot_bytes + forecast.batch_bytes + forecast.host_copy_bytes);
  JobSpec on_cpu = Job();
  on_cpu.mutable_resources()->set_device(job::Resources::DEVICE_CPU);
  CHECK(ForecastReplica(Mlp(256), on_cpu)->device_total() == 0);
}

TEST_CASE("forecast: a job that is over gpu_memory is refused with what would fit", "[step]") {
  JobSpec job = Job();
  const int64_t needs = ForecastReplica(Mlp(256), job)->device_total();
  JobSpec fitting = Job();
  fitting.mutable_train()->set_micro_batch(64);
  const int64_t enough = ForecastReplica(Mlp(64), fitting)->device_total();
  REQUIRE(enough < needs);

  job.mutable_resources()->mutable_gpu_memory()->set_bytes(enough);
  const absl::Status refused = ForecastReplica(Mlp(256), job).status();
  fitting.mutable_resources()->mutable_gpu_memory()->set_bytes(enough);

  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()),
             Contains(absl::StrCat("needs ", needs, " bytes of its GPU (state ")) &&
                 Contains("resources.gpu_memory: ") && Contains(absl::StrCat(" leaves it ", enough, " beside")) &&
                 Contains("Largest of the training plan's values: '") && !Contains("snapshots"));
  CHECK_THAT(std::string(refused.message()), Contains(absl::StrCat("`train.micro_batch: 64` (", enough, " bytes)")));
  CHECK(ForecastReplica(Mlp(64), fitting).ok());
}

TEST_CASE("forecast: a fraction is of the GPU's total, and grow takes what is free", "[step]") {
  JobSpec job = Job();
  job.mutable_resources()->mutable_gpu_memory()->set_fraction(0.01);
  CHECK_THAT(std::string(ForecastReplica(Mlp(256), job).status().message()),
             Contains("resources.gpu_memory: 0.01 leaves it 40000 beside what CUDA takes itself"));

  job.mutable_resources()->mutable_gpu_memory()->set_grow(true);
  CHECK(ForecastReplica(Mlp(256), job).ok());
  job.mutable_train()->set_global_batch_size(8192);
  job.mutable_train()->set_logical_shards(1);
  CHECK_THAT(std::string(ForecastReplica(Mlp(8192), job).status().message()),
             Contains("bytes of its GPU") && Contains("the GPU has 2000000 free") && Contains("fits"));
}

TEST_CASE("forecast: the host's limit counts what lies in the host's memory alone", "[step]") {
  JobSpec job = Job();
  const ReplicaForecast forecast = ForecastReplica(Mlp(256), job).value();
  job.mutable_resources()->mutable_cpu_memory()->set_bytes(forecast.host_total());
  CHECK(ForecastReplica(Mlp(256), job).ok());

  job.mutable_resources()->mutable_cpu_memory()->set_bytes(forecast.host_total() - 1);
  CHECK_THAT(std::string(ForecastReplica(Mlp(256), job).status().message()),
             Contains("snapshots of it") && Contains("resources.cpu_memory allows") && !Contains("training plan"));
}

}  // namespace
}  // namespace lockstep::worker
