// What a plan says where NVIDIA's libraries refuse a node that they should serve: the CUDA device in host execution,
// with the libraries for a described GPU, told to refuse.
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

using Catch::Contains;
using device::cuda::FakeCublasLt;
using device::cuda::FakeCudnn;
using worker::KernelChoices;
using worker::Plan;
using worker::PlanOptions;

Graph WithInputs(const std::vector<GraphInput>& inputs) {
  Graph graph;
  graph.inputs = inputs;
  for (const GraphInput& input : graph.inputs) graph.values[input.name] = {input.dtype, input.shape};
  return graph;
}

// Products of 16 x 16 matrices, one after the other, and one of another shape.
Graph Products(DType dtype) {
  Graph graph = WithInputs({{"x", dtype, {16, 16}}, {"w", dtype, {16, 16}}, {"last", dtype, {16, 24}}});
  MustOk(AppendNode(&graph, {"first", OpType::kMatMul, {"x", "w"}, {"y0"}, NoAttributes{}}));
  MustOk(AppendNode(&graph, {"second", OpType::kMatMul, {"y0", "w"}, {"y1"}, NoAttributes{}}));
  MustOk(AppendNode(&graph, {"third", OpType::kMatMul, {"y1", "last"}, {"y2"}, NoAttributes{}}));
  graph.outputs = {"y2"};
  return graph;
}

Graph Convolution(const std::vector<int64_t>& pads) {
  Graph graph = WithInputs({{"x", DType::kF32, {2, 16, 8, 8}}, {"w", DType::kF32, {16, 16, 3, 3}}});
  MustOk(AppendNode(&graph,
                    {"conv", OpType::kConv, {"x", "w"}, {"y"}, ConvAttributes{.kernel_shape = {3, 3}, .pads = pads}}));
  graph.outputs = {"y"};
  return graph;
}

struct Drafted {
  std::vector<std::string> warnings;
  KernelChoices choices;
};

Drafted Draft(device::Device& device, const Graph& graph, const PlanOptions& options = {}) {
  Drafted drafted;
  SetLogTap([&](const LogRecord& record) {
    if (record.level == LogLevel::warn) drafted.warnings.push_back(record.message);
  });
  drafted.choices = Must(Plan::Draft(&device, graph, options))->choices();
  SetLogTap(nullptr);
  return drafted;
}

}  // namespace

TEST_CASE("library refusals: each shape that cuBLASLt refuses is a warning with its words, once per plan", "[device]") {
  FakeCublasLt::Get() = {};
  FakeCudnn::Get() = {};
  FakeCublasLt::Get().heuristics = CUBLAS_STATUS_NOT_SUPPORTED;
  const auto device = Must(device::MakeCudaDevice({}));

  const Drafted drafted = Draft(*device, Products(DType::kF32));

  REQUIRE(drafted.warnings.size() == 2);
  CHECK_THAT(drafted.warnings[0], Contains("'first'") && Contains("own:tile") &&
                                      Contains("MatMul F32[16, 16] F32[16, 16] -> F32[16, 16]") &&
                                      Contains("CUBLAS_STATUS_NOT_SUPPORTED"));
  CHECK_THAT(drafted.warnings[1], Contains("'third'") && Contains("F32[16, 24]"));
  CHECK(Draft(*device, Products(DType::kF32)).warnings.size() == 2);
  CHECK(Draft(*device, Products(DType::kF32), {.trials = true}).warnings.size() == 2);
}

TEST_CASE("library refusals: algorithms that may not serve count as none", "[device]") {
  FakeCublasLt::Get() = {};
  FakeCudnn::Get() = {};
  FakeCublasLt::Get().offers = {{.scheme = CUBLASLT_REDUCTION_SCHEME_INPLACE, .splits = 4}};
  const auto device = Must(device::MakeCudaDevice({}));

  const Drafted drafted = Draft(*device, Products(DType::kF32));

  REQUIRE(drafted.warnings.size() == 2);
  CHECK_THAT(drafted.warnings[0], Contains("cuBLASLt offers 1 algorithms, none that adds up in a fixed order"));
}

TEST_CASE("library refusals: a kernel that is widened for BF16 is named with the refusal of BF16", "[device]") {
  FakeCublasLt::Get() = {};
  FakeCudnn::Get() = {};
  FakeCublasLt::Get().heuristics = CUBLAS_STATUS_NOT_SUPPORTED;
  const auto device = Must(device::MakeCudaDevice({}));

  const Drafted drafted = Draft(*device, Products(DType::kBF16));

  REQUIRE(drafted.warnings.size() == 2);
  CHECK_THAT(drafted.warnings[0], Contains("widened:own:tile") && Contains("BF16[16, 16]"));
}

TEST_CASE("library refusals: a convolution that cuDNN refuses is a warning with its words", "[device]") {
  FakeCudnn::Get() = {};
  const auto device = Must(device::MakeCudaDevice({}));
  FakeCudnn::Get().refuses = true;

  const Drafted drafted = Draft(*device, Convolution({1, 1, 1, 1}));

  REQUIRE(drafted.warnings.size() == 1);
  CHECK_THAT(drafted.warnings[0],
             Contains("Conv F32[2, 16, 8, 8]") && Contains("own:tile") && Contains("cuDNN: the graph of operations"));
}

TEST_CASE("library refusals: nothing is said where libraries serve, where none is asked, and by who joins",
          "[device]") {
  FakeCublasLt::Get() = {};
  FakeCudnn::Get() = {};
  const auto device = Must(device::MakeCudaDevice({}));

  CHECK(Draft(*device, Products(DType::kF32)).warnings.empty());
  CHECK(Draft(*device, Convolution({1, 1, 1, 1})).warnings.empty());
  CHECK(Draft(*device, Convolution({1, 0, 0, 1})).warnings.empty());  // no library takes such padding

  FakeCublasLt::Get().heuristics = CUBLAS_STATUS_NOT_SUPPORTED;
  const KernelChoices planned = Draft(*device, Products(DType::kF32)).choices;
  CHECK(Draft(*device, Products(DType::kF32), {.choices = &planned}).warnings.empty());
}

}  // namespace lockstep
