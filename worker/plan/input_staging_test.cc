#include "worker/plan/input_staging.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kStagedBatch = 4;

// A plan on a device that postpones its work until somebody waits, with memory that the host cannot touch.
struct HiddenPlan {
  HiddenPlan() {
    const StateLayout layout = MakeStateLayout(metagraph);
    const TestVariables variables(metagraph, 7);
    const std::unique_ptr<device::Stream> stream = device->NewStream().value();
    std::map<std::string, std::byte*> addresses;
    size_t next = 0;
    for (const auto& [name, host] : variables.addresses) {
      const Tensor& tensor =
          *std::find_if(variables.tensors.begin(), variables.tensors.end(),
                        [&, address = host](const Tensor& candidate) { return candidate.data() == address; });
      memory.push_back(device->Allocate(static_cast<size_t>(tensor.byte_size())).value());
      addresses[name] = memory[next++]->address();
      MustOk(stream->CopyToDevice(addresses[name], tensor.data(), static_cast<size_t>(tensor.byte_size())));
    }
    MustOk(stream->Synchronize());
    plan = Must(Plan::Make(device.get(), Must(MakeTrainingGraph(metagraph)).graph, addresses, {}));
    MustOk(plan->RefreshVariables());
  }
  ~HiddenPlan() { plan.reset(); }

  float LossOfPass(const PassKey& key, const TestInputs& inputs) {
    MustOk(plan->RunPass(inputs.bytes, key));
    return ReadFloats(*plan, kLossSum)[0];
  }

  const MetaGraph metagraph = LenetModel(kStagedBatch);
  const std::unique_ptr<device::Device> device = device::MakeDeferredDevice(
      device::MakeDevice(device::DeviceKind::kReference, {}).value(), device::DeferredMemory::kHidden);
  std::vector<std::unique_ptr<device::Buffer>> memory;
  std::unique_ptr<Plan> plan;
};

absl::Status Nothing(int) { return absl::OkStatus(); }

TEST_CASE("input staging: inputs that were copied ahead give a pass the bits of inputs from the host", "[plan]") {
  HiddenPlan hidden;
  Plan& plan = *hidden.plan;
  const TestInputs first(plan.inputs(), 1), second(plan.inputs(), 2);
  const float expected[] = {hidden.LossOfPass({}, first), hidden.LossOfPass({}, second)};
  REQUIRE(expected[0] != expected[1]);
  const auto staging = Must(InputStaging::Make(*hidden.device, plan));

  // The second's inputs are on their way before anything of the first pass was done, and must not overtake it.
  MustOk(staging->Copy(first.bytes));
  MustOk(plan.RunPassOnDevice(Must(staging->Use()), {}, Nothing));
  MustOk(staging->Copy(second.bytes));
  MustOk(staging->WaitForCopies());
  CHECK(ReadFloats(plan, kLossSum)[0] == expected[0]);

  MustOk(plan.RunPassOnDevice(Must(staging->Use()), {}, Nothing));
  CHECK(ReadFloats(plan, kLossSum)[0] == expected[1]);
}

TEST_CASE("input staging: what was copied from may change once the copies were waited for", "[plan]") {
  HiddenPlan hidden;
  Plan& plan = *hidden.plan;
  TestInputs inputs(plan.inputs(), 1);
  const float expected = hidden.LossOfPass({}, inputs);
  const auto staging = Must(InputStaging::Make(*hidden.device, plan));

  MustOk(staging->Copy(inputs.bytes));
  MustOk(staging->WaitForCopies());
  for (Tensor& tensor : inputs.tensors) std::fill(tensor.bytes().begin(), tensor.bytes().end(), std::byte{1});
  MustOk(plan.RunPassOnDevice(Must(staging->Use()), {}, Nothing));

  CHECK(ReadFloats(plan, kLossSum)[0] == expected);
}

TEST_CASE("input staging: inputs that no pass took are replaced", "[plan]") {
  HiddenPlan hidden;
  Plan& plan = *hidden.plan;
  const TestInputs unused(plan.inputs(), 1), used(plan.inputs(), 2);
  const float expected = hidden.LossOfPass({}, used);
  const auto staging = Must(InputStaging::Make(*hidden.device, plan));

  MustOk(staging->Copy(unused.bytes));
  MustOk(staging->Copy(used.bytes));
  MustOk(plan.RunPassOnDevice(Must(staging->Use()), {}, Nothing));

  CHECK(ReadFloats(plan, kLossSum)[0] == expected);
}

}  // namespace
}  // namespace lockstep::worker
