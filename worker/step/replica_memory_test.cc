// What a worker that is parked gives back of its GPU's memory, and takes again: on the GPU that host execution plays,
// by what that has free.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/initial_state.h"
#include "common/graph/serialize.h"
#include "common/job/graph_request.h"
#include "common/status/check.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/data/test_files.h"
#include "worker/device/choice/cuda_loader.h"
#include "worker/step/replica.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

constexpr int64_t kSamples = 64;
constexpr int64_t kFeatures = 24;

void MustOk(const absl::Status& status) { LS_CHECK(status.ok(), std::string(status.message()).c_str()); }

std::string Npy(const std::string& type, const std::string& shape, const std::string& data) {
  return NpyBytes(absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ")}"), data);
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A job that trains in two passes a shard, clips, evaluates and takes what memory it needs.
class SmallJob {
 public:
  SmallJob() {
    // Once per process: what the machine looks like stays.
    setenv("LOCKSTEP_CUDA_LIBRARY", "worker/cuda_library/liblockstep_cuda_on_host.so", 1);
    setenv("LOCKSTEP_HOST_GPU_BYTES", "67108864", 1);
    std::vector<float> inputs;
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < kSamples * kFeatures; ++i) inputs.push_back(static_cast<float>(i * 37 % 23) / 7 - 1.5f);
    for (int64_t i = 0; i < kSamples; ++i) labels.push_back(i % 10);
    const std::string data = absl::StrCat(
        "{inputs: ", files_.Write("inputs.npy", Npy("<f4", absl::StrCat("(64, ", kFeatures, ","), Bytes(inputs))),
        ", labels: ", files_.Write("labels.npy", Npy("<i8", "(64,", Bytes(labels))), "}");
    const std::string yaml = absl::StrCat(
        "name: memory\n"
        "model: {builtin: {name: mlp, classes: 10, hidden: [16], dropout: 0.1}, loss: softmax_cross_entropy}\n"
        "train: {duration: 9steps, global_batch_size: 16, logical_shards: 2, micro_batch: 4, clip_norm: 1.0, "
        "optimizer: {name: adamw, lr: 0.01}}\n"
        "numerics: {tuned: false}\nresources: {device: cuda}\n"
        "data:\n  train: ",
        data, "\n  eval: ", data, "\n");
    job_ = ParseJob(yaml, files_.directory() + "/job.yaml").value();
    const TensorSpec fields{"inputs", DType::kF32, {kFeatures}};
    metagraph_ =
        BuildMetaGraph(MakeMetaGraphRequest(job_, nullptr, {&fields, 1}, {"labels", DType::kI64, {}}, kSamples).value())
            .value();
  }

  std::unique_ptr<Replica> Make() const {
    ReplicaProblem problem;
    auto replica = Replica::Make(SerializeMetaGraph(metagraph_).value(), job_, "", nullptr, problem);
    LS_CHECK(replica != nullptr, std::string(problem.status.message()).c_str());
    MustOk(replica->state().host().Load(MakeInitialState(metagraph_, 7).value()));
    MustOk(replica->state().Store());
    replica->runner().StateReplaced();
    return replica;
  }
  JobSpec& job() { return job_; }

 private:
  TestFiles files_;
  JobSpec job_;
  MetaGraph metagraph_;
};

int64_t FreeOnGpu() { return device::LoadCudaLibrary().value()->report().gpus.at(0).free_bytes; }

int64_t StateBytes(Replica& replica) { return HostState::BytesOf(replica.state().layout()).value(); }

// Losses of steps and an evaluation, then the digest.
struct Trace {
  std::vector<double> numbers;
  std::string digest;
  friend bool operator==(const Trace&, const Trace&) = default;
};

void Train(Replica& replica, int64_t first, int64_t last, Trace& trace) {
  const auto communicators = MakeLoopback({1, static_cast<uint64_t>(first)}, 1);
  for (int64_t step = first; step <= last; ++step) {
    const StepResult result = replica.runner().RunStep(*communicators[0], step, {}).value();
    LS_CHECK(result.applied, "the steps of this test are applied");
    trace.numbers.push_back(result.record.loss);
  }
  const SliceOutcome slice = replica.runner().RunSlice(*communicators[0], last, 0, {}).value();
  trace.numbers.push_back(slice.result.sums.loss);
  MustOk(replica.state().Fetch());
  trace.digest = replica.state().host().Digest();
}

TEST_CASE("replica: what it gives back leaves the state alone on the GPU, and afterwards steps go on", "[step][cuda]") {
  SmallJob job;
  Trace undisturbed, released;
  uint64_t nodes = 0;
  {
    const std::unique_ptr<Replica> replica = job.Make();
    Train(*replica, 1, 3, undisturbed);
    Train(*replica, 4, 6, undisturbed);
    nodes = replica->runner().nodes_executed();
  }
  const int64_t before = FreeOnGpu();
  const std::unique_ptr<Replica> replica = job.Make();
  Train(*replica, 1, 3, released);
  const int64_t with_all = before - FreeOnGpu();
  const int64_t samples = replica->times().samples;

  REQUIRE(replica->ReleaseMemory());
  CHECK(before - FreeOnGpu() == StateBytes(*replica));
  CHECK(with_all >= StateBytes(*replica) + replica->releasable_bytes());
  CHECK_FALSE(replica->ReleaseMemory());
  CHECK(replica->released());
  CHECK(replica->times().samples == samples);
  // What is asked of a parked worker needs the state alone.
  MustOk(replica->state().Fetch());
  CHECK(replica->state().host().Digest() == released.digest);
  replica->Cancel(true);

  REQUIRE(replica->TakeMemory().ok());
  CHECK(before - FreeOnGpu() == with_all);
  const auto broken = MakeLoopback({1, 9}, 1);
  CHECK(absl::IsCancelled(replica->runner().RunStep(*broken[0], 4, {}).status()));
  replica->Cancel(false);
  Train(*replica, 4, 6, released);
  CHECK(released == undisturbed);
  CHECK(replica->times().samples >= 2 * samples);
  CHECK(replica->runner().nodes_executed() >= nodes);
}

TEST_CASE("replica: memory that others took meanwhile is named with sizes, and may be asked for again",
          "[step][cuda]") {
  SmallJob job;
  const std::unique_ptr<Replica> replica = job.Make();
  Trace undisturbed, released;
  Train(*replica, 1, 2, released);
  REQUIRE(replica->ReleaseMemory());
  const std::unique_ptr<Replica> other = job.Make();  // there is room for it now
  Train(*other, 1, 2, undisturbed);
  Train(*other, 3, 4, undisturbed);

  auto device = device::LoadCudaLibrary().value()->make_device({}).value();
  {
    const auto taken = device->Allocate(static_cast<size_t>(FreeOnGpu() - 4096)).value();
    const int64_t left = FreeOnGpu();
    const absl::Status gone = replica->TakeMemory();
    CHECK(absl::IsResourceExhausted(gone));
    CHECK_THAT(std::string(gone.message()),
               Contains(absl::StrCat("gave ", replica->releasable_bytes(), " bytes of its GPU's memory back")) &&
                   Contains("has no room for") && Contains("`resources.gpu_memory: grow`"));
    CHECK(replica->released());
    CHECK(FreeOnGpu() == left);
  }
  REQUIRE(replica->TakeMemory().ok());
  Train(*replica, 3, 4, released);

  CHECK(released == undisturbed);
}

TEST_CASE("replica: a share of a GPU that was set aside is kept, and so is the host's memory", "[step][cuda]") {
  SmallJob job;
  job.job().mutable_resources()->mutable_gpu_memory()->set_fraction(0.5);
  const std::unique_ptr<Replica> capped = job.Make();
  const int64_t free = FreeOnGpu();
  CHECK_FALSE(capped->ReleaseMemory());
  CHECK(FreeOnGpu() == free);
  CHECK_FALSE(capped->released());

  job.job().mutable_resources()->clear_gpu_memory();
  job.job().mutable_resources()->set_device(job::Resources::DEVICE_CPU);
  CHECK_FALSE(job.Make()->ReleaseMemory());
}

}  // namespace
}  // namespace lockstep::worker
