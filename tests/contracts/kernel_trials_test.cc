// Which kernel serves a node where a plan may try them out: the CUDA device in host execution, where a launch takes as
// long as the test says, with NVIDIA's libraries for a described GPU.
#include "worker/device/cuda/kernel_trials.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/graph/ops/schema.h"
#include "common/log/log.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/cuda/make_device.h"
#include "worker/fakes/fake_cublaslt.h"
#include "worker/fakes/fake_cudnn.h"
#include "worker/plan/plan.h"

namespace lockstep {
namespace {

using device::cuda::FakeCublasLt;
using device::cuda::FakeCudnn;
using worker::KernelChoices;
using worker::Plan;

// Products of one shape, one after the other.
Graph Layers(int count, DType dtype = DType::kF32) {
  Graph graph;
  graph.inputs = {{"x", dtype, {16, 16}}, {"w", dtype, {16, 16}}};
  for (const GraphInput& input : graph.inputs) graph.values[input.name] = {input.dtype, input.shape};
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    const std::string next = "y" + std::to_string(i);
    MustOk(AppendNode(&graph, {"layer" + std::to_string(i), OpType::kMatMul, {last, "w"}, {next}, NoAttributes{}}));
    last = next;
  }
  graph.outputs = {last};
  return graph;
}

KernelChoices Choose(device::Device& device, const Graph& graph, bool trials, const KernelChoices* planned = nullptr) {
  return Must(Plan::Draft(&device, graph, {.choices = planned, .trials = trials}))->choices();
}

std::string Only(const KernelChoices& choices) {
  for (const auto& [node, implementation] : choices) CHECK(implementation == choices.begin()->second);
  return choices.begin()->second;
}

// Algorithms of the same product that differ in what a launch takes; the first number of a name's bytes that differs is
// that of the offer.
void Offer(const std::vector<double>& milliseconds) {
  FakeCublasLt::Get() = {};
  FakeCublasLt::Get().offers.clear();
  for (size_t i = 0; i < milliseconds.size(); ++i) {
    FakeCublasLt::Get().offers.push_back({.workspace_bytes = 256 * (i + 1), .milliseconds = milliseconds[i]});
  }
}

// Which of the offers a name is of, by its scratch; -1: none.
int OfferOf(const std::string& implementation) {
  for (int i = 0; i < 8; ++i) {
    if (implementation.find(":" + std::to_string(256 * (i + 1)) + ":") != std::string::npos) return i;
  }
  return -1;
}

// What the log says while a plan is made.
std::vector<std::string> WarningsOf(device::Device& device, const Graph& graph, KernelChoices& choices) {
  std::vector<std::string> warnings;
  SetLogTap([&](const LogRecord& record) {
    if (record.level == LogLevel::warn) warnings.push_back(record.message);
  });
  choices = Choose(device, graph, true);
  SetLogTap(nullptr);
  return warnings;
}

}  // namespace

TEST_CASE("kernel trials: a kernel whose results are wrong is left out, and the log says so", "[device]") {
  const auto device = Must(device::MakeCudaDevice({}));
  Offer({0.9, 0.2, 0.5});
  FakeCublasLt::Get().offers[1].error = 0.1f;

  KernelChoices choices;
  const std::vector<std::string> warnings = WarningsOf(*device, Layers(2), choices);

  CHECK(OfferOf(Only(choices)) == 2);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains(":512:") && Catch::Contains("where an own kernel gives"));
}

TEST_CASE("kernel trials: a kernel that gives other bits when it runs again is left out", "[device]") {
  const auto device = Must(device::MakeCudaDevice({}));
  Offer({0.2, 0.9});
  FakeCublasLt::Get().offers[0].error = 1e-6f;
  FakeCublasLt::Get().offers[0].restless = true;

  KernelChoices choices;
  const std::vector<std::string> warnings = WarningsOf(*device, Layers(1), choices);

  CHECK(OfferOf(Only(choices)) == 1);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains("gave other bits when it ran again"));
}

TEST_CASE("kernel trials: where all kernels of a library are wrong an own kernel serves", "[device]") {
  const auto device = Must(device::MakeCudaDevice({}));
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Offer({0.2});
    FakeCublasLt::Get().offers[0].error = 0.5f;

    KernelChoices choices;
    const std::vector<std::string> warnings = WarningsOf(*device, Layers(1, dtype), choices);

    CHECK(Only(choices) == (dtype == DType::kBF16 ? "widened:own:tile" : "own:tile"));
    CHECK(warnings.size() == 1);
  }
}

TEST_CASE("kernel trials: what is faster by less than the margin does not displace what stands before it", "[device]") {
  using device::cuda::FastestOf;
  CHECK(FastestOf({}) == 0);
  CHECK(FastestOf({1.0f, 0.98f, 0.975f}) == 0);
  CHECK(FastestOf({1.0f, 0.96f, 0.94f}) == 1);
  CHECK(FastestOf({1.0f, 0.96f, 0.5f}) == 2);
  CHECK(FastestOf({-1.0f, 3.0f, -1.0f, 2.0f}) == 3);
  CHECK(FastestOf({-1.0f, -1.0f}) == 0);
}

TEST_CASE("kernel trials: the fastest is taken, once for nodes that are alike", "[device]") {
  const auto device = Must(device::MakeCudaDevice({}));
  Offer({0.9, 0.5, 0.2, 0.7});

  const std::string chosen = Only(Choose(*device, Layers(1), true));

  CHECK(OfferOf(chosen) == 2);
  const int launches = FakeCublasLt::Get().launches;
  CHECK(launches > 0);
  CHECK(Only(Choose(*device, Layers(5), true)) == chosen);
  CHECK(FakeCublasLt::Get().launches == launches);
}

TEST_CASE("kernel trials: an own kernel may be the fastest", "[device]") {
  const auto device = Must(device::MakeCudaDevice({}));
  Offer({40, 50});

  CHECK_THAT(Only(Choose(*device, Layers(2), true)), Catch::StartsWith("own:"));
}

TEST_CASE("kernel trials: nothing is tried where trials are not asked for", "[device]") {
  const auto device = Must(device::MakeCudaDevice({}));
  Offer({0.9, 0.5});

  CHECK(OfferOf(Only(Choose(*device, Layers(2), false))) == 0);
  CHECK(FakeCublasLt::Get().launches == 0);
}

TEST_CASE("kernel trials: who joins takes the choice from the kernel plan and tries nothing", "[device]") {
  Offer({0.9, 0.5});
  const KernelChoices plan = Choose(*Must(device::MakeCudaDevice({})), Layers(2), true);
  REQUIRE(OfferOf(Only(plan)) == 1);
  Offer({0.9, 5});  // here the other one would win

  const auto joining = Must(device::MakeCudaDevice({}));

  CHECK(Choose(*joining, Layers(2), true, &plan) == plan);
  CHECK(FakeCublasLt::Get().launches == 0);
}

TEST_CASE("kernel trials: without memory to try them in the first is taken", "[device]") {
  const auto device = Must(device::MakeCudaDevice({.memory_limit = 1024}));
  Offer({0.9, 0.5});

  CHECK(OfferOf(Only(Choose(*device, Layers(1), true))) == 0);
  CHECK(FakeCublasLt::Get().launches == 0);
}

TEST_CASE("kernel trials: a convolution's engines are tried, and the memory is given back", "[device]") {
  FakeCudnn::Get() = {};
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {2, 16, 8, 8}}, {"w", DType::kF32, {16, 16, 3, 3}}};
  for (const GraphInput& input : graph.inputs) graph.values[input.name] = {input.dtype, input.shape};
  MustOk(AppendNode(
      &graph,
      {"conv", OpType::kConv, {"x", "w"}, {"y"}, ConvAttributes{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}}}));
  graph.outputs = {"y"};
  const auto device = Must(device::MakeCudaDevice({}));
  const auto numbers_of = [&](const std::string& name) { return std::stoll(name.substr(name.find(":eng") + 4)); };
  const std::string by_rule = Only(Choose(*device, graph, false));
  REQUIRE_THAT(by_rule, Catch::StartsWith("cudnn:"));
  const int64_t free_before = Must(device::MakeCudaDevice({}))->info().memory;
  FakeCudnn::Get().milliseconds[numbers_of(by_rule)] = 100;

  const std::string chosen = Only(Choose(*device, graph, true));

  CHECK(chosen != by_rule);
  CHECK(FakeCudnn::Get().executions > 0);
  CHECK(Must(device::MakeCudaDevice({}))->info().memory == free_before);
}

}  // namespace lockstep
