// An account asks libraries that are not there (planned_libraries.h). Here they are, for a GPU that is described to
// them: what is asked of the one is asked of the other.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/cuda/vendor/planned_libraries.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {
namespace {

using device::KernelRequest;

// "cudnn:bf16-nhwc" of a name with version, GPU and engine.
std::string Sort(const std::string& implementation) {
  const std::vector<std::string> parts = absl::StrSplit(implementation, ':');
  return parts.size() < 2 ? implementation : absl::StrCat(parts[0], ":", parts[1]);
}

// The CUDA device, with a list of where planned libraries would have done otherwise.
class ComparedDevice final : public device::Device {
 public:
  explicit ComparedDevice(bool tf32)
      : inner_(device::MakeCudaDevice({.tf32 = tf32}).value()), planned_(device::cuda::NewPlannedLibraries(tf32)) {}

  std::vector<std::string> differences;
  int served = 0;

  const device::DeviceInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> Allocate(size_t bytes) override { return inner_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> AllocateHost(size_t bytes) override {
    return inner_->AllocateHost(bytes);
  }
  bool host_visible() const override { return false; }
  absl::StatusOr<std::unique_ptr<device::Stream>> NewStream() override { return inner_->NewStream(); }
  absl::StatusOr<std::unique_ptr<device::Event>> NewEvent() override { return inner_->NewEvent(); }
  absl::Status Supports(const KernelRequest& request) const override { return inner_->Supports(request); }
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeReorder(const device::ReorderRequest& request) override {
    return inner_->MakeReorder(request);
  }
  device::StepMath& step_math() override { return inner_->step_math(); }

  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeKernel(const KernelRequest& request) override {
    absl::StatusOr<std::unique_ptr<device::Kernel>> kernel = inner_->MakeKernel(request);
    if (kernel.ok() && request.implementation.empty()) Compare(request, **kernel);
    return kernel;
  }

 private:
  void Compare(const KernelRequest& request, const device::Kernel& kernel) {
    const std::string& name = request.node->name;
    const bool library = absl::StartsWith(kernel.implementation(), "cu");
    const auto planned = planned_->MakeKernels(request, 1);
    if (planned.ok() != library) {
      differences.push_back(absl::StrCat(name, ": ", kernel.implementation(),
                                         ", planned: ", planned.ok() ? "served" : planned.status().message()));
      return;
    }
    if (!library) return;
    ++served;
    const device::Kernel& plan = *planned->front();
    bool same = Sort(kernel.implementation()) == plan.implementation();
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      same = same && kernel.input_layout(static_cast<int>(i)) == plan.input_layout(static_cast<int>(i));
    }
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      same = same && kernel.output_layout(static_cast<int>(i)) == plan.output_layout(static_cast<int>(i));
    }
    if (!same) differences.push_back(absl::StrCat(name, ": ", kernel.implementation(), " or other layouts"));
  }

  const std::unique_ptr<device::Device> inner_;
  const std::unique_ptr<device::cuda::VendorLibraries> planned_;
};

MetaGraph Model(const ModelSpec& model, DType dtype, const Shape& sample, const Shape& label, Precision precision) {
  const auto batched = [](Shape shape) {
    shape.insert(shape.begin(), kBatchDim);
    return shape;
  };
  MetaGraphRequest request;
  request.model = model;
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, dtype, batched(sample), {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, batched(label), {}}};
  request.loss.kind = LossKind::kSoftmaxCrossEntropy;
  request.update.optimizer = {.kind = OptimizerKind::kAdamW};
  request.update.schedule = {.kind = ScheduleKind::kConstant, .lr = 0.01};
  request.pass_batch = 8;
  request.precision = precision;
  return BuildMetaGraph(request).value();
}

void CheckServedAlike(const MetaGraph& metagraph, bool tf32, int least) {
  ComparedDevice device(tf32);
  const TrainingGraph training = MakeTrainingGraph(metagraph).value();
  const auto plan = Plan::Draft(&device, training.graph, {});
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  CHECK(device.differences == std::vector<std::string>());
  CHECK(device.served >= least);
}

TEST_CASE("libraries: a transformer is served as an account says", "[account]") {
  const ModelSpec model{
      .architecture = "gpt2", .layers = 2, .heads = 2, .width = 128, .context = 128, .vocabulary = 97};
  // Products of each block, three a piece; in bf16 attention too.
  CheckServedAlike(Model(model, DType::kI64, {128}, {128}, Precision::kBf16), false, 2 * (12 + 2));
  CheckServedAlike(Model(model, DType::kI64, {128}, {128}, Precision::kFloat32), true, 2 * 12);
}

TEST_CASE("libraries: a residual network is served as an account says", "[account]") {
  const ModelSpec model{.architecture = "resnet18", .outputs = 10};
  CheckServedAlike(Model(model, DType::kF32, {3, 64, 64}, {}, Precision::kBf16), false, 3 * 20 - 1);
  CheckServedAlike(Model(model, DType::kF32, {3, 64, 64}, {}, Precision::kFloat32), false, 3 * 20 - 1);
}

}  // namespace
}  // namespace lockstep::worker
