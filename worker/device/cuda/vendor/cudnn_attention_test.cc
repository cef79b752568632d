// Attention by cuDNN against the op's own definition, with fake_cudnn.h in the place of what needs a GPU: graphs are
// built, engines chosen, compiled and described by the library itself, for a GPU that is described to it.
#include "worker/device/cuda/vendor/cudnn_attention.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/attention.h"
#include "common/random/random.h"
#include "common/tensor/bf16.h"
#include "common/tensor/tensor.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/cuda/vendor/engine_choice.h"
#include "worker/fakes/fake_cudnn.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Contains;

template <typename T>
T Must(absl::StatusOr<T> value) {
  INFO(value.status().ToString());
  REQUIRE(value.ok());
  return *std::move(value);
}

void MustOk(const absl::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

struct Sizes {
  int64_t batch = 2, heads = 2, key_heads = 2, queries = 8, keys = 8, size = 8, value_size = 8;
  AttentionAttributes attributes = {};
};

Shape HeadsOf(const Sizes& s, int64_t heads, int64_t length, int64_t size, bool rows) {
  return rows ? Shape{s.batch, length, heads, size} : Shape{s.batch, heads, length, size};
}

// Shapes of Q, K and V; of the three in one where they are packed.
std::vector<Shape> FactorsOf(const Sizes& s) {
  const AttentionAttributes& a = s.attributes;
  if (a.packed_heads > 0) return {{s.batch, s.queries, s.heads + 2 * s.key_heads, s.size}, {}, {}};
  return {HeadsOf(s, s.heads, s.queries, s.size, a.q_rows), HeadsOf(s, s.key_heads, s.keys, s.size, a.k_rows),
          HeadsOf(s, s.key_heads, s.keys, s.value_size, a.v_rows)};
}

Operand OperandOf(const Shape& shape, DType dtype = DType::kBF16) {
  if (shape.empty()) return {.present = false};
  return {.dtype = dtype, .shape = shape};
}

struct Asked {
  Node node;
  std::vector<Operand> inputs, outputs;

  KernelRequest request(const std::string& implementation = "") const {
    return {.node = &node, .inputs = inputs, .outputs = outputs, .implementation = implementation};
  }
};

Asked Forward(const Sizes& s) {
  Asked asked{.node = {.op = OpType::kAttention, .attributes = s.attributes}};
  for (const Shape& shape : FactorsOf(s)) asked.inputs.push_back(OperandOf(shape));
  asked.outputs = {OperandOf(HeadsOf(s, s.heads, s.queries, s.value_size, s.attributes.y_rows)),
                   OperandOf({s.batch, s.heads, s.queries, 2}, DType::kF32)};
  return asked;
}

Asked Backward(const Sizes& s) {
  const Asked forward = Forward(s);
  Asked asked{.node = {.op = OpType::kAttentionGrad, .attributes = s.attributes}, .outputs = forward.inputs};
  asked.inputs = {forward.outputs[0]};
  asked.inputs.insert(asked.inputs.end(), forward.inputs.begin(), forward.inputs.end());
  asked.inputs.insert(asked.inputs.end(), forward.outputs.begin(), forward.outputs.end());
  return asked;
}

using Bytes = std::vector<std::byte>;

size_t SizeOf(const Operand& operand) {
  return operand.present ? static_cast<size_t>(NumElements(operand.shape)) * DTypeSize(operand.dtype) : 0;
}

Bytes RandomBf16(const Operand& operand, uint64_t seed) {
  Bytes bytes(SizeOf(operand));
  const RandomStream stream = RandomStream::For(seed, 1);
  for (size_t i = 0; i < bytes.size() / sizeof(Bf16); ++i) {
    reinterpret_cast<Bf16*>(bytes.data())[i] = Bf16(2 * SymmetricUnit(stream.At(i)));
  }
  return bytes;
}

std::vector<Bytes> Run(Device& device, const Asked& asked, Kernel& kernel, const std::vector<Bytes>& inputs) {
  const auto stream = Must(device.NewStream());
  std::vector<std::unique_ptr<Buffer>> buffers;
  KernelArguments arguments;
  const auto allocate = [&](const Operand& operand) -> std::byte* {
    if (!operand.present) return nullptr;
    buffers.push_back(Must(device.Allocate(SizeOf(operand))));
    return buffers.back()->address();
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    arguments.inputs.push_back(allocate(asked.inputs[i]));
    MustOk(stream->CopyToDevice(arguments.inputs[i], inputs[i].data(), inputs[i].size()));
  }
  for (const Operand& output : asked.outputs) arguments.outputs.push_back(allocate(output));
  const auto workspace = Must(device.Allocate(kernel.workspace_bytes()));
  arguments.workspace = workspace->address();
  MustOk(kernel.Bind(arguments));
  MustOk(kernel.Launch(*stream));
  std::vector<Bytes> outputs;
  for (size_t i = 0; i < asked.outputs.size(); ++i) {
    outputs.emplace_back(SizeOf(asked.outputs[i]));
    MustOk(stream->CopyToHost(outputs[i].data(), arguments.outputs[i], outputs[i].size()));
  }
  MustOk(stream->Synchronize());
  return outputs;
}

// Values of a result, of which cuDNN's may differ by what it rounds on the way: weights and gradients of scores.
void CheckClose(const Operand& operand, const Bytes& expected, const Bytes& got) {
  if (!operand.present) return;
  const auto at = [&](const Bytes& bytes, size_t i) {
    if (operand.dtype == DType::kF32) return reinterpret_cast<const float*>(bytes.data())[i];
    return static_cast<float>(reinterpret_cast<const Bf16*>(bytes.data())[i]);
  };
  const size_t count = expected.size() / DTypeSize(operand.dtype);
  float largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(at(expected, i)));
  for (size_t i = 0; i < count; ++i) {
    CAPTURE(i, at(expected, i), at(got, i), largest);
    REQUIRE(std::fabs(at(expected, i) - at(got, i)) <= (operand.dtype == DType::kF32 ? 1e-5f : 0.02f) * largest);
  }
}

std::unique_ptr<Cudnn> Open(int64_t workspace_limit = kCudnnWorkspaceLimit) {
  FakeCudnn::Get() = {};
  return Must(
      Cudnn::Open({.gpu = kDescribedGpuName, .described_gpu = kDescribedGpu, .workspace_limit = workspace_limit}));
}

std::unique_ptr<Kernel> MakeOne(const Cudnn& cudnn, const Asked& asked, const std::string& name = "") {
  auto kernels = Must(MakeCudnnAttention(cudnn, asked.request(name)));
  REQUIRE(kernels.size() == 1);
  return std::move(kernels.front());
}

// Forward and backward by cuDNN and by the device's own kernels for F32. Both backwards read the own statistics.
void CheckBoth(const Cudnn& cudnn, const Sizes& sizes) {
  const auto device = Must(MakeCudaDevice({}));
  const auto own = [&](const Asked& asked) { return Must(device->MakeKernel(asked.request("widened:own:tiles"))); };
  const Asked forward = Forward(sizes), backward = Backward(sizes);
  std::vector<Bytes> inputs;
  for (size_t i = 0; i < forward.inputs.size(); ++i) inputs.push_back(RandomBf16(forward.inputs[i], i));
  const std::vector<Bytes> expected = Run(*device, forward, *own(forward), inputs);
  const std::vector<Bytes> got = Run(*device, forward, *MakeOne(cudnn, forward), inputs);
  CheckClose(forward.outputs[0], expected[0], got[0]);
  CheckClose(forward.outputs[1], expected[1], got[1]);

  std::vector<Bytes> all = {RandomBf16(backward.inputs[0], 7)};
  all.insert(all.end(), inputs.begin(), inputs.end());
  all.insert(all.end(), got.begin(), got.end());
  const std::vector<Bytes> expected_gradients = Run(*device, backward, *own(backward), all);
  const std::vector<Bytes> gradients = Run(*device, backward, *MakeOne(cudnn, backward), all);
  for (size_t i = 0; i < gradients.size(); ++i) {
    INFO("gradient " << i);
    CheckClose(backward.outputs[i], expected_gradients[i], gradients[i]);
  }
}

std::string RefusalOf(const Cudnn& cudnn, const Asked& asked, const std::string& name) {
  const absl::Status status = MakeCudnnAttention(cudnn, asked.request(name)).status();
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

}  // namespace

TEST_CASE("cudnn attention: values, statistics and gradients are the op's, for heads in every order", "[cuda]") {
  const auto cudnn = Open();
  CheckBoth(*cudnn, {.queries = 20, .keys = 33, .size = 16, .value_size = 24, .attributes = {.scale = 0.25}});
  CheckBoth(*cudnn, {.queries = 20, .keys = 20, .attributes = {.causal = true, .q_rows = true, .y_rows = true}});
  CheckBoth(*cudnn, {.queries = 5, .keys = 9, .attributes = {.causal = true, .k_rows = true, .v_rows = true}});
}

TEST_CASE("cudnn attention: heads of queries may share those of keys", "[cuda]") {
  const auto cudnn = Open();
  CheckBoth(*cudnn, {.heads = 6, .key_heads = 2, .queries = 10, .keys = 12, .attributes = {.scale = 0.5}});
}

TEST_CASE("cudnn attention: operands may be one, and so may their gradients", "[cuda]") {
  const auto cudnn = Open();
  CheckBoth(*cudnn, {.attributes = {.causal = true, .y_rows = true, .packed_heads = 2}});
  CheckBoth(*cudnn, {.heads = 4, .key_heads = 2, .attributes = {.scale = 0.5, .packed_heads = 4}});
}

TEST_CASE("cudnn attention: where scratch for the batch is not allowed, parts of it go one after the other", "[cuda]") {
  const Sizes sizes = {.batch = 4, .attributes = {.causal = true}};
  const auto device = Must(MakeCudaDevice({}));
  const auto roomy = Open();
  const size_t whole = MakeOne(*roomy, Backward(sizes))->workspace_bytes();

  const auto tight = Open(int64_t{150} << 10);

  CHECK(MakeOne(*tight, Backward(sizes))->workspace_bytes() < whole);
  FakeCudnn::Get() = {};
  CheckBoth(*tight, sizes);
  CHECK(FakeCudnn::Get().executions > 2);
  CHECK(absl::IsUnimplemented(MakeCudnnAttention(*Open(1000), Backward(sizes).request()).status()));
}

TEST_CASE("cudnn attention: the name of the chosen engine makes the same kernel again", "[cuda]") {
  const auto cudnn = Open();
  const Sizes sizes = {.batch = 4,
                       .heads = 12,
                       .key_heads = 12,
                       .queries = 256,
                       .keys = 256,
                       .size = 64,
                       .value_size = 64,
                       .attributes = {.causal = true}};
  for (const Asked& asked : {Forward(sizes), Backward(sizes)}) {
    const auto several = Must(MakeCudnnAttention(*cudnn, asked.request(), 4));
    CHECK(several.size() > 1);
    for (const auto& kernel : several) {
      INFO(kernel->implementation());
      CHECK(Must(ParseEngineChoice(kernel->implementation())).math == "bf16");

      const auto again = MakeOne(*cudnn, asked, kernel->implementation());

      CHECK(again->implementation() == kernel->implementation());
      CHECK(again->workspace_bytes() == kernel->workspace_bytes());
    }
    EngineChoice other = Must(ParseEngineChoice(several[0]->implementation()));
    other.engine = "eng9999";
    CHECK_THAT(RefusalOf(*cudnn, asked, PrintEngineChoice(other)), Contains("heuristics refuse here"));
    other.version = 1;
    CHECK_THAT(RefusalOf(*cudnn, asked, PrintEngineChoice(other)), Contains("which is for cuDNN"));
  }
}

TEST_CASE("cudnn attention: layers that are alike share what cuDNN compiled", "[cuda]") {
  const auto cudnn = Open();
  const Asked asked = Forward({.attributes = {.causal = true}}), other = Forward({.attributes = {.causal = false}});
  const auto first = MakeOne(*cudnn, asked);
  const int plans = FakeCudnn::Get().plans;
  CHECK(plans > 0);

  const auto second = MakeOne(*cudnn, asked), third = MakeOne(*cudnn, asked, first->implementation());

  CHECK(FakeCudnn::Get().plans == plans);
  CHECK((second->implementation() == first->implementation() && third->implementation() == first->implementation()));
  MakeOne(*cudnn, other);
  CHECK(FakeCudnn::Get().plans > plans);
}

TEST_CASE("cudnn attention: a device serves BF16 by it, and a name in the kernel plan makes it again", "[cuda]") {
  const auto device = Must(MakeCudaDevice({}));
  const Asked asked = Forward({.size = 64, .value_size = 64});

  const auto kernel = Must(device->MakeKernel(asked.request()));

  CHECK_THAT(kernel->implementation(), Catch::StartsWith("cudnn:bf16:"));
  CHECK(Must(device->MakeKernel(asked.request(kernel->implementation())))->implementation() ==
        kernel->implementation());
  Asked odd = Forward({.size = 12, .value_size = 12});
  CHECK_THAT(Must(device->MakeKernel(odd.request()))->implementation(), Catch::StartsWith("widened:own:"));
}

}  // namespace lockstep::device::cuda
