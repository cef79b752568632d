// Values with channels last on the CUDA device: what is moved, and that kernels which keep them so compute what they
// compute of row-major values.
#include "worker/kernels/cuda/channels_last.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/run_nodes.h"
#include "worker/device/kernel.h"

namespace lockstep {
namespace {

using device::cuda::ChannelsLast;

bool IsBatchNorm(OpType op) {
  return op == OpType::kBatchNormTraining || op == OpType::kBatchNormGrad || op == OpType::kBatchNormFrozenGrad;
}

// Sums over channels are gathered in another order, in double.
void CheckAlike(OpType op, const Tensor& expected, const Tensor& got) {
  if (!IsBatchNorm(op) || expected.dtype() != DType::kF32) {
    CHECK(BitEqual(expected, got));
    return;
  }
  float largest = 0;
  for (const float value : expected.elements<float>()) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < expected.elements<float>().size(); ++i) {
    CAPTURE(i);
    REQUIRE(std::fabs(expected.elements<float>()[i] - got.elements<float>()[i]) <= 1e-6f * largest);
  }
}

NamedTensors CloneOf(const NamedTensors& values) {
  NamedTensors clone;
  for (const auto& [name, tensor] : values) clone.emplace(name, tensor.Clone());
  return clone;
}

TEST_CASE("channels last: every op computes what it computes of row-major values", "[channels]") {
  const auto device = MakeTestedDevice(TestedDevice::kCudaOnHost);
  std::set<OpType> kept;
  for (const OpType op : AllOps()) {
    for (const uint64_t seed : Seeds()) {
      INFO("LOCKSTEP_TEST_SEED=" << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      NamedTensors expected = RandomSources(c.graph, seed);
      NamedTensors got = CloneOf(expected);

      RunNodes(*device, c.graph, &expected);
      if (RunNodesIn(&ChannelsLast, *device, c.graph, &got) > 0) kept.insert(op);

      for (const std::string& output : c.graph.outputs) {
        INFO(output);
        CheckAlike(op, expected.at(output), got.at(output));
      }
    }
  }
  for (const OpType op :
       {OpType::kAdd, OpType::kMul, OpType::kRelu, OpType::kReluGrad, OpType::kCast, OpType::kBatchNormalization,
        OpType::kBatchNormTraining, OpType::kBatchNormGrad, OpType::kBatchNormFrozenGrad, OpType::kMaxPool,
        OpType::kMaxPoolWithArgmax, OpType::kMaxPoolGrad, OpType::kAveragePool, OpType::kAveragePoolGrad}) {
    INFO(OpName(op));
    CHECK(kept.count(op) == 1);
  }
  for (const OpType op : {OpType::kDropoutTraining, OpType::kDropoutGrad, OpType::kSoftmax, OpType::kConcat}) {
    INFO(OpName(op));
    CHECK(kept.count(op) == 0);
  }
}

TEST_CASE("channels last: elements go where the name says, of every size, and back", "[channels]") {
  const auto device = MakeTestedDevice(TestedDevice::kCudaOnHost);
  const auto stream = Must(device->NewStream());
  const DType dtype = GENERATE(DType::kU8, DType::kBF16, DType::kF32, DType::kI64);
  const Shape shape = GENERATE(Shape{2, 3, 5}, Shape{1, 70, 9, 7}, Shape{3, 8, 2, 2, 40}, Shape{2, 33, 64});
  const int64_t samples = shape[0], channels = shape[1], volume = NumElements(shape) / (samples * channels);
  const auto size = static_cast<size_t>(DTypeSize(dtype));
  std::vector<std::byte> given(static_cast<size_t>(NumElements(shape)) * size);
  for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  const auto input = Must(device->Allocate(given.size()));
  const auto last = Must(device->Allocate(given.size()));
  const auto back = Must(device->Allocate(given.size()));
  const device::Layout layout = ChannelsLast(dtype, shape);
  REQUIRE(layout.bytes == given.size());

  MustOk(stream->CopyToDevice(input->address(), given.data(), given.size()));
  const auto there = Must(device->MakeReorder({dtype, shape, {}, layout}));
  MustOk(there->Bind({{input->address()}, {last->address()}, nullptr}));
  MustOk(there->Launch(*stream));
  const auto return_trip = Must(device->MakeReorder({dtype, shape, layout, {}}));
  MustOk(return_trip->Bind({{last->address()}, {back->address()}, nullptr}));
  MustOk(return_trip->Launch(*stream));
  std::vector<std::byte> moved(given.size()), returned(given.size());
  MustOk(stream->CopyToHost(moved.data(), last->address(), moved.size()));
  MustOk(stream->CopyToHost(returned.data(), back->address(), returned.size()));
  MustOk(stream->Synchronize());

  std::vector<std::byte> expected(given.size());
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t v = 0; v < volume; ++v) {
        const auto from = static_cast<size_t>((n * channels + c) * volume + v) * size;
        const auto to = static_cast<size_t>((n * volume + v) * channels + c) * size;
        std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(from), size,
                    expected.begin() + static_cast<std::ptrdiff_t>(to));
      }
    }
  }
  CHECK(moved == expected);
  CHECK(returned == given);
}

TEST_CASE("channels last: what lies alike either way is row-major, and other layouts are refused", "[channels]") {
  CHECK(ChannelsLast(DType::kF32, {2, 3}).row_major());
  CHECK(ChannelsLast(DType::kF32, {2, 3, 1, 1}).row_major());
  CHECK(ChannelsLast(DType::kF32, {2, 1, 4, 4}).row_major());
  CHECK(ChannelsLast(DType::kF32, {0, 3, 4, 4}).row_major());
  CHECK_FALSE(ChannelsLast(DType::kF32, {1, 2, 1, 2}).row_major());

  const auto device = MakeTestedDevice(TestedDevice::kCudaOnHost);
  device::Layout other;
  other.name = other.encoding = "nChw8c";
  other.bytes = 64;
  const auto refused = device->MakeReorder({DType::kF32, {1, 8, 1, 2}, {}, other});
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(std::string(refused.status().message()), Catch::Matchers::Contains("nChw8c"));
}

}  // namespace
}  // namespace lockstep
