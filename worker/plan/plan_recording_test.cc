// Passes on a device that can record: the first is queued kernel by kernel, the second is written down, later ones are
// replayed; what cannot be written down goes on kernel by kernel.
#include <catch2/catch.hpp>

#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep::worker {
namespace {

// The loss of every pass over inputs that differ, and how many nodes were launched.
struct Passes {
  explicit Passes(device::Device& device) {
    const MetaGraph metagraph = LenetModel(4);
    const TestVariables variables(metagraph, 7);
    const TrainingGraph training = Must(MakeTrainingGraph(metagraph));
    const auto plan = Must(Plan::Make(&device, training.graph, variables.addresses, {.bucket_bytes = 4096}));
    REQUIRE(plan->gradient_layout().buckets().size() > 3);
    MustOk(plan->RefreshVariables());
    for (uint64_t pass = 0; pass < 4; ++pass) {
      const TestInputs inputs(plan->inputs(), 11 + pass);
      MustOk(plan->RunPass(inputs.bytes, {.seed = 3, .step = static_cast<int64_t>(pass)}));
      MustOk(plan->Synchronize());
      losses.push_back(ReadFloats(*plan, kLossSum));
      last = ReadFloats(*plan, plan->outputs().back().name);
    }
    nodes = plan->nodes_executed();
  }
  std::vector<std::vector<float>> losses;
  std::vector<float> last;  // of the last output after the last pass
  uint64_t nodes = 0;
};

TEST_CASE("plan: what a device refuses to record is queued node by node, with the same results", "[plan]") {
  const auto reference = Must(device::MakeDevice(device::DeviceKind::kReference, {}));
  const Passes expected(*reference);
  REQUIRE(expected.losses[0] != expected.losses[1]);

  for (const int refused : {0, 1, 2, 1000}) {
    INFO(refused << " recordings are refused");
    const auto device = device::MakeDeferredDevice(Must(device::MakeDevice(device::DeviceKind::kReference, {})),
                                                   device::DeferredMemory::kOfInner, refused);
    const Passes got(*device);
    CHECK(got.losses == expected.losses);
    CHECK(got.last == expected.last);
    CHECK(got.nodes == expected.nodes);
  }
}

}  // namespace
}  // namespace lockstep::worker
