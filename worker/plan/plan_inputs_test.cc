// What a pass reads: every input is fed with its own bytes, and nothing is read before it was written.
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/device/choice/devices.h"
#include "worker/device/kernel.h"
#include "worker/plan/plan.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

constexpr int64_t kBatch = 4;

// A kernel that never writes its results.
class IdleKernel final : public device::Kernel {
 public:
  explicit IdleKernel(std::unique_ptr<device::Kernel> inner) : inner_(std::move(inner)) {}
  const std::string& implementation() const override { return inner_->implementation(); }
  size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  device::Layout input_layout(int input) const override { return inner_->input_layout(input); }
  device::Layout output_layout(int output) const override { return inner_->output_layout(output); }
  bool CanShare(int, int) const override { return false; }
  absl::Status Bind(const device::KernelArguments&) override { return absl::OkStatus(); }
  absl::Status Launch(device::Stream&) override { return absl::OkStatus(); }

 private:
  std::unique_ptr<device::Kernel> inner_;
};

// The reference device, whose kernel of the node `idle` does nothing.
class ForgetfulDevice final : public device::Device {
 public:
  explicit ForgetfulDevice(std::string idle) : idle_(std::move(idle)) {}
  const device::DeviceInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> Allocate(size_t bytes) override { return inner_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> AllocateHost(size_t bytes) override {
    return inner_->AllocateHost(bytes);
  }
  bool host_visible() const override { return inner_->host_visible(); }
  absl::StatusOr<std::unique_ptr<device::Stream>> NewStream() override { return inner_->NewStream(); }
  absl::StatusOr<std::unique_ptr<device::Event>> NewEvent() override { return inner_->NewEvent(); }
  absl::Status Supports(const device::KernelRequest& request) const override { return inner_->Supports(request); }
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeKernel(const device::KernelRequest& request) override {
    auto kernel = inner_->MakeKernel(request);
    if (!kernel.ok() || request.node->name != idle_) return kernel;
    return std::make_unique<IdleKernel>(*std::move(kernel));
  }
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeReorder(const device::ReorderRequest& request) override {
    return inner_->MakeReorder(request);
  }
  device::StepMath& step_math() override { return inner_->step_math(); }

 private:
  const std::unique_ptr<device::Device> inner_ = Must(device::MakeDevice(device::DeviceKind::kReference, {}));
  const std::string idle_;
};

// A training plan of LeNet on a device whose kernel `idle` does nothing.
struct LenetPlan {
  explicit LenetPlan(bool poison, const std::string& idle = "") : device(idle), variables(metagraph, 7) {
    plan = Must(Plan::Make(&device, Must(MakeTrainingGraph(metagraph)).graph, variables.addresses, {.poison = poison}));
    inputs = std::make_unique<TestInputs>(plan->inputs(), 11);
    MustOk(plan->RefreshVariables());
  }
  float Loss() {
    MustOk(plan->RunPass(inputs->bytes, {}));
    return ReadFloats(*plan, kLossSum)[0];
  }
  const MetaGraph metagraph = LenetModel(kBatch);
  ForgetfulDevice device;
  TestVariables variables;
  std::unique_ptr<Plan> plan;
  std::unique_ptr<TestInputs> inputs;
};

TEST_CASE("plan: a pass is refused before anything is queued unless every input is fed with its own bytes", "[plan]") {
  LenetPlan lenet(false);
  Plan& plan = *lenet.plan;
  const uint64_t nodes = plan.nodes_executed();
  REQUIRE(plan.inputs()[0].name == "images");
  std::vector<InputBytes> bytes = lenet.inputs->bytes;
  const auto refused = [&] {
    const absl::Status status = plan.RunPass(bytes, {});
    CHECK(absl::IsInternal(status));
    CHECK(absl::IsInternal(plan.RunPassWithDigests(bytes, {}).status()));
    return std::string(status.message());
  };

  bytes[0] = lenet.inputs->bytes[1];
  CHECK_THAT(refused(), Contains("input 'images' takes 12544 bytes of a pass and was given 32"));
  bytes[0] = {};
  CHECK_THAT(refused(), Contains("input 'images'") && Contains("was given 0"));
  bytes.resize(1);
  CHECK_THAT(refused(), Contains("takes 2 inputs and was given 1"));
  CHECK(plan.nodes_executed() == nodes);
  CHECK(std::isfinite(lenet.Loss()));
}

TEST_CASE("plan: poisoned memory changes no bits, pass after pass", "[plan]") {
  LenetPlan plain(false), poisoned(true);

  for (int pass = 0; pass < 2; ++pass) CHECK(plain.Loss() == poisoned.Loss());

  const auto digests = Must(plain.plan->RunPassWithDigests(plain.inputs->bytes, {}));
  const auto others = Must(poisoned.plan->RunPassWithDigests(poisoned.inputs->bytes, {}));
  REQUIRE(digests.size() == others.size());
  for (size_t i = 0; i < digests.size(); ++i) CHECK(digests[i].sha256 == others[i].sha256);
}

TEST_CASE("plan: a value that nothing wrote shows where memory is poisoned", "[plan]") {
  const std::string idle = "fc1";
  REQUIRE(std::isfinite(LenetPlan(false, idle).Loss()));

  LenetPlan lenet(true, idle);

  CHECK(std::isnan(lenet.Loss()));
  CHECK(std::isnan(lenet.Loss()));  // nor is it what lay there after the pass before
  CHECK(PlanOptions{}.poison == kPoisonsMemory);
}

}  // namespace
}  // namespace lockstep::worker
