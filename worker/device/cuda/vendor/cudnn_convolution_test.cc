// Convolutions by cuDNN with fake_cudnn.h in the place of what needs a GPU: graphs are built, engines chosen and plans
// made by the library itself, for a GPU that is described to it.
#include "worker/device/cuda/vendor/cudnn_convolution.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/conv.h"
#include "worker/device/cuda/vendor/engine_choice.h"
#include "worker/fakes/fake_cudnn.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Contains;

struct Asked {
  Node node;
  std::vector<Shape> inputs;
  Shape output;
};

Asked SomeConv(int64_t channels = 64) {
  const ConvAttributes attributes{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}};
  return {{.op = OpType::kConv, .attributes = attributes},
          {{8, channels, 16, 16}, {channels, channels, 3, 3}},
          {8, channels, 16, 16}};
}

struct How {
  DType dtype = DType::kF32;
  bool free_layouts = false;
};

absl::StatusOr<std::unique_ptr<Kernel>> Make(const Cudnn& cudnn, const Asked& asked,
                                             const std::string& implementation = "", const How& how = {}) {
  KernelRequest request{.node = &asked.node, .free_layouts = how.free_layouts, .implementation = implementation};
  for (const Shape& shape : asked.inputs) request.inputs.push_back({.dtype = how.dtype, .shape = shape});
  request.outputs.push_back({.dtype = how.dtype, .shape = asked.output});
  auto kernels = MakeCudnnConvolution(cudnn, request);
  if (!kernels.ok()) return kernels.status();
  return std::move(kernels->front());
}

std::unique_ptr<Cudnn> Open(bool tf32 = false, int64_t workspace_limit = int64_t{256} << 20) {
  FakeCudnn::Get() = {};
  auto cudnn = Cudnn::Open(
      {.gpu = kDescribedGpuName, .tf32 = tf32, .described_gpu = kDescribedGpu, .workspace_limit = workspace_limit});
  INFO(cudnn.status());
  REQUIRE(cudnn.ok());
  return *std::move(cudnn);
}

std::string KernelName(const Cudnn& cudnn, const Asked& asked) {
  const auto kernel = Make(cudnn, asked);
  INFO(kernel.status());
  REQUIRE(kernel.ok());
  return (*kernel)->implementation();
}

std::string RefusalOf(const Cudnn& cudnn, const std::string& name) {
  const absl::Status status = Make(cudnn, SomeConv(), name).status();
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

}  // namespace

TEST_CASE("cudnn convolution: the name of the chosen engine makes the same kernel again", "[cuda]") {
  for (const bool tf32 : {false, true}) {
    const auto cudnn = Open(tf32);
    for (const int64_t channels : {3, 64}) {
      auto first = Make(*cudnn, SomeConv(channels));
      INFO(first.status());
      REQUIRE(first.ok());
      const std::string name = (*first)->implementation();
      const size_t workspace_bytes = (*first)->workspace_bytes();
      first->reset();  // else its plan would be shared
      const auto choice = ParseEngineChoice(name);
      REQUIRE(choice.ok());
      CHECK((choice->version == cudnnGetVersion() && choice->gpu == kDescribedGpuName));
      CHECK(choice->math == (tf32 ? "tf32" : "f32"));

      const auto again = Make(*cudnn, SomeConv(channels), name);

      INFO(again.status());
      REQUIRE(again.ok());
      CHECK((*again)->implementation() == name);
      CHECK((*again)->workspace_bytes() == workspace_bytes);
    }
  }
}

TEST_CASE("cudnn convolution: an engine that rounds to tf32 is refused where that was not asked for", "[cuda]") {
  const auto rounding = Open(true);
  EngineChoice choice = *ParseEngineChoice(KernelName(*rounding, SomeConv()));
  const auto exact = Open(false);
  choice.math = "f32";

  CHECK_THAT(RefusalOf(*exact, PrintEngineChoice(choice)), Contains("heuristics refuse here"));
}

TEST_CASE("cudnn convolution: a name from elsewhere is refused with the reason", "[cuda]") {
  const auto cudnn = Open();
  const EngineChoice choice = *ParseEngineChoice(KernelName(*cudnn, SomeConv()));
  EngineChoice newer = choice, other = choice, knobs = choice;
  ++newer.version;
  other.engine = "eng9999";
  knobs.engine += "_k99=1";

  CHECK_THAT(RefusalOf(*cudnn, PrintEngineChoice(newer)), Contains("which is for cuDNN"));
  CHECK_THAT(RefusalOf(*cudnn, PrintEngineChoice(other)), Contains("heuristics refuse here"));
  CHECK_THAT(RefusalOf(*cudnn, PrintEngineChoice(knobs)), Contains("heuristics refuse here"));
  CHECK_THAT(RefusalOf(*cudnn, "cudnn:"), Contains("not one of cuDNN's"));
}

namespace {

// A convolution of an image network and its gradients.
std::vector<Asked> Passes(const Shape& x, int64_t filters, int64_t size, int64_t stride) {
  const int64_t pad = size / 2;
  const ConvAttributes attributes{
      .kernel_shape = {size, size}, .strides = {stride, stride}, .pads = {pad, pad, pad, pad}};
  const Shape w = {filters, x[1], size, size};
  const Shape y = {x[0], filters, (x[2] - 1) / stride + 1, (x[3] - 1) / stride + 1};
  return {{{.op = OpType::kConv, .attributes = attributes}, {x, w}, y},
          {{.op = OpType::kConvGradInput, .attributes = attributes}, {y, w}, x},
          {{.op = OpType::kConvGradWeight, .attributes = attributes}, {y, x}, w}};
}

bool LiesLast(const Kernel& kernel) {
  return !kernel.input_layout(0).row_major() && !kernel.output_layout(0).row_major();
}

}  // namespace

TEST_CASE("cudnn convolution: matrix units get channels last, in every pass of an image network", "[cuda]") {
  const auto cudnn = Open();
  const How free{.dtype = DType::kBF16, .free_layouts = true};
  for (const std::vector<Asked>& passes :
       {Passes({64, 3, 224, 224}, 64, 7, 2), Passes({64, 64, 56, 56}, 256, 1, 1), Passes({64, 128, 56, 56}, 128, 3, 2),
        Passes({64, 1024, 14, 14}, 2048, 1, 2), Passes({64, 512, 7, 7}, 512, 3, 1)}) {
    for (const Asked& asked : passes) {
      CAPTURE(OpName(asked.node.op), asked.inputs[0], asked.inputs[1]);
      auto kernel = Make(*cudnn, asked, "", free);
      INFO(kernel.status());
      REQUIRE(kernel.ok());
      const std::string name = (*kernel)->implementation();
      CHECK_THAT(name, Contains(":bf16-nhwc:"));
      // The weights of a window of one element lie alike either way.
      const bool weights = asked.node.op == OpType::kConvGradWeight;
      CHECK((weights ? !(*kernel)->input_layout(0).row_major() : LiesLast(**kernel)));
      kernel->reset();

      const auto again = Make(*cudnn, asked, name, free);
      REQUIRE(again.ok());
      CHECK((*again)->implementation() == name);
      const absl::Status refused = Make(*cudnn, asked, name, {.dtype = DType::kBF16}).status();
      CHECK(absl::IsInvalidArgument(refused));
      CHECK_THAT(std::string(refused.message()), Contains("row-major"));
    }
  }
}

TEST_CASE("cudnn convolution: values are row-major where a plan wants it, for float32, and by an older plan's names",
          "[cuda]") {
  const auto cudnn = Open();
  const auto is_row_major = [](const absl::StatusOr<std::unique_ptr<Kernel>>& kernel) {
    INFO(kernel.status());
    REQUIRE(kernel.ok());
    return (*kernel)->input_layout(0).row_major() && (*kernel)->input_layout(1).row_major() &&
           (*kernel)->output_layout(0).row_major();
  };
  const auto fixed = Make(*cudnn, SomeConv(), "", {.dtype = DType::kBF16});
  CHECK(is_row_major(fixed));
  CHECK(is_row_major(Make(*cudnn, SomeConv(), "", {.free_layouts = true})));
  CHECK(is_row_major(
      Make(*cudnn, SomeConv(), (*fixed)->implementation(), {.dtype = DType::kBF16, .free_layouts = true})));
}

TEST_CASE("cudnn convolution: no engine takes more scratch than the limit", "[cuda]") {
  const ConvAttributes attributes{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}, .group = 4};
  const Asked grouped = {
      {.op = OpType::kConv, .attributes = attributes}, {{8, 64, 32, 32}, {128, 16, 3, 3}}, {8, 128, 32, 32}};
  const auto roomy = Open();
  REQUIRE((*Make(*roomy, grouped))->workspace_bytes() > 0);

  const auto none = Open(false, 0);

  const auto kernel = Make(*none, grouped);
  REQUIRE(kernel.ok());
  CHECK((*kernel)->workspace_bytes() == 0);
}

TEST_CASE("cudnn convolution: what does not start says so", "[cuda]") {
  FakeCudnn::Get().create = CUDNN_STATUS_NOT_INITIALIZED;
  CHECK(absl::IsFailedPrecondition(Cudnn::Open({.gpu = kDescribedGpuName}).status()));

  FakeCudnn::Get() = {};
  CHECK(absl::IsInvalidArgument(Cudnn::Open({.gpu = kDescribedGpuName, .described_gpu = "{}"}).status()));
}

}  // namespace lockstep::device::cuda
