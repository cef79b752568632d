#include "worker/profile/profiled_device.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"
#include "worker/plan/plan_test_models.h"
#include "worker/profile/operations.h"

namespace lockstep::worker {
namespace {

std::unique_ptr<device::Device> Cpu() { return Must(device::MakeDevice(device::DeviceKind::kCpu, {})); }

device::KernelRequest RequestOf(const Node& node, std::vector<Shape> inputs, Shape output) {
  device::KernelRequest request{.node = &node};
  for (Shape& shape : inputs) request.inputs.push_back({.shape = std::move(shape)});
  request.outputs = {{.shape = std::move(output)}};
  return request;
}

TEST_CASE("profiled device: every node of a pass is a span, once per pass, and the bits are the same", "[profile]") {
  const MetaGraph metagraph = LenetModel(8);
  const TrainingGraph training = Must(MakeTrainingGraph(metagraph));
  TestVariables variables(metagraph, 3);
  Profiler profiler;
  ProfiledDevice watched(Cpu(), &profiler);
  const auto plain_device = Cpu();
  const auto plan = Must(Plan::Make(&watched, training.graph, variables.addresses, {}));
  const auto plain = Must(Plan::Make(plain_device.get(), training.graph, variables.addresses, {}));
  const TestInputs inputs(plan->inputs(), 5);

  profiler.Start();
  MustOk(plan->RefreshVariables());
  for (int pass = 0; pass < 2; ++pass) MustOk(plan->RunPass(inputs.bytes, {}));
  profiler.Stop();

  std::map<std::string, int64_t> calls;
  std::map<std::string, ProfileTrack> tracks;
  for (size_t i = 0; i < profiler.works().size(); ++i) {
    const ProfiledWork& work = profiler.works()[i];
    if (work.op[0] == '(') continue;
    calls[work.name] += profiler.totals()[i].calls;
    tracks[work.op] = work.track;
  }
  // The plan lists what it runs: nodes by name, changes of layout and copies in words.
  int nodes = 0;
  for (const auto& [key, implementation] : plan->choices()) {
    std::string name = key.substr(key.find('/') + 1);
    name = name.substr(0, name.find_first_of(" +"));
    CAPTURE(key);
    CHECK(calls.at(name) == 2);
    ++nodes;
  }
  CHECK(nodes == static_cast<int>(calls.size()));
  CHECK(tracks.at("Conv") == ProfileTrack::kForward);
  CHECK(tracks.at("ConvGradWeight") == ProfileTrack::kBackward);
  CHECK(plan->choices() == plain->choices());
  const auto digests = Must(plan->RunPassWithDigests(inputs.bytes, {}));
  MustOk(plain->RefreshVariables());
  const auto expected = Must(plain->RunPassWithDigests(inputs.bytes, {}));
  REQUIRE(digests.size() == expected.size());
  for (size_t i = 0; i < digests.size(); ++i) CHECK(digests[i].sha256 == expected[i].sha256);
}

TEST_CASE("profiled device: what a device does by itself is done when a call returns, so that its time is counted",
          "[profile]") {
  Profiler profiler;
  ProfiledDevice watched(device::MakeDeferredDevice(Cpu(), device::DeferredMemory::kHidden), &profiler);
  REQUIRE_FALSE(watched.host_visible());
  const auto stream = Must(watched.NewStream());
  const auto memory = Must(watched.Allocate(3));
  CHECK(stream->can_record());
  profiler.Start();
  CHECK_FALSE(stream->can_record());
  std::vector<std::byte> in = {std::byte{1}, std::byte{2}, std::byte{3}}, out(3);

  MustOk(stream->CopyToDevice(memory->address(), in.data(), 3));
  in[0] = std::byte{9};  // too late to matter
  MustOk(stream->CopyToHost(out.data(), memory->address(), 3));

  CHECK(out == std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{3}});
}

TEST_CASE("operations: products and convolutions count what their definition multiplies", "[profile]") {
  const Node gemm{.op = OpType::kGemm, .attributes = GemmAttributes{.trans_b = true}};
  const Node matmul{.op = OpType::kMatMul};
  const Node conv{.op = OpType::kConv, .attributes = ConvAttributes{.kernel_shape = {3, 3}, .group = 2}};
  const Node input{.op = OpType::kConvGradInput, .attributes = ConvAttributes{.kernel_shape = {3, 3}, .group = 2}};
  const Node weight{.op = OpType::kConvGradWeight, .attributes = ConvAttributes{.kernel_shape = {3, 3}, .group = 2}};
  const Node relu{.op = OpType::kRelu};
  const Shape x = {2, 8, 5, 5}, w = {6, 4, 3, 3}, y = {2, 6, 3, 3};
  const int64_t convolution = 2 * (2 * 6 * 3 * 3) * (4 * 3 * 3);

  CHECK(ArithmeticOperations(RequestOf(gemm, {{4, 5}, {7, 5}}, {4, 7})) == 2 * 4 * 5 * 7);
  CHECK(ArithmeticOperations(RequestOf(matmul, {{3, 4, 5}, {5, 7}}, {3, 4, 7})) == 2 * 3 * 4 * 5 * 7);
  CHECK(ArithmeticOperations(RequestOf(conv, {x, w}, y)) == convolution);
  CHECK(ArithmeticOperations(RequestOf(input, {y, w}, x)) == convolution);
  CHECK(ArithmeticOperations(RequestOf(weight, {y, x}, w)) == convolution);
  CHECK(ArithmeticOperations(RequestOf(relu, {x}, x)) == 0);
  CHECK(BytesTouched(RequestOf(relu, {x}, x)) == 2 * 4 * NumElements(x));
}

}  // namespace
}  // namespace lockstep::worker
