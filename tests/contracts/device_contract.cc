// What every device promises of memory, streams, marks and refusals: the same suite for each of DeviceCandidates().
#include "tests/contracts/device_contract.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/contracts/device_comparison.h"
#include "worker/device/kernel.h"

namespace lockstep {
namespace {

using device::Device;

const std::byte* Bytes(const float* values) { return reinterpret_cast<const std::byte*>(values); }
std::byte* Bytes(float* values) { return reinterpret_cast<std::byte*>(values); }

// y = relu(x) over four floats in one buffer: x at byte 0, y at byte 256.
struct ReluFixture {
  explicit ReluFixture(Device& device) {
    const Node node{.name = "relu", .op = OpType::kRelu, .inputs = {"x"}, .outputs = {"y"}};
    const device::Operand four{.shape = {4}};
    kernel = Must(device.MakeKernel({.node = &node, .inputs = {four}, .outputs = {four}}));
    memory = Must(device.Allocate(512));
    workspace = Must(device.Allocate(kernel->workspace_bytes()));
    MustOk(kernel->Bind(
        {.inputs = {memory->address()}, .outputs = {memory->address() + 256}, .workspace = workspace->address()}));
  }
  std::unique_ptr<device::Kernel> kernel;
  std::unique_ptr<device::Buffer> memory;
  std::unique_ptr<device::Buffer> workspace;
};

TEST_CASE("device: memory is aligned, zeroed and as large as asked", "[device]") {
  const DeviceCandidate candidate = GENERATE(from_range(DeviceCandidates()));
  INFO(candidate.name);
  const auto device = candidate.make();
  const auto stream = Must(device->NewStream());

  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 20}) {
    const auto buffer = Must(device->Allocate(bytes));
    CHECK(buffer->size() == bytes);
    CHECK(reinterpret_cast<uintptr_t>(buffer->address()) % device::Buffer::kAlignment == 0);
    std::vector<std::byte> host(bytes, std::byte{7});
    MustOk(stream->CopyToHost(host.data(), buffer->address(), bytes));
    MustOk(stream->Synchronize());
    CHECK(std::all_of(host.begin(), host.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
  CHECK(absl::IsResourceExhausted(device->Allocate(size_t{1} << 60).status()));
}

TEST_CASE("device: work of one stream is done in order and visible after waiting", "[device]") {
  const DeviceCandidate candidate = GENERATE(from_range(DeviceCandidates()));
  INFO(candidate.name);
  const auto device = candidate.make();
  const auto stream = Must(device->NewStream());
  const auto event = Must(device->NewEvent());
  ReluFixture relu(*device);
  const float in[4] = {-1, 2, -3, 4};
  float first[4] = {};
  float second[4] = {};

  CHECK(event->Ready());
  MustOk(event->Wait());
  MustOk(stream->CopyToDevice(relu.memory->address(), Bytes(in), sizeof(in)));
  MustOk(relu.kernel->Launch(*stream));
  MustOk(stream->CopyToHost(Bytes(first), relu.memory->address() + 256, sizeof(first)));
  MustOk(stream->Record(*event));
  MustOk(stream->Zero(relu.memory->address() + 256, 8));
  MustOk(stream->CopyOnDevice(relu.memory->address() + 264, relu.memory->address(), 8));
  MustOk(stream->CopyToHost(Bytes(second), relu.memory->address() + 256, sizeof(second)));
  if (candidate.deferred) CHECK_FALSE(event->Ready());
  MustOk(event->Wait());

  CHECK(event->Ready());
  CHECK(std::vector<float>(first, first + 4) == std::vector<float>{0, 2, 0, 4});
  MustOk(stream->Synchronize());
  CHECK(std::vector<float>(second, second + 4) == std::vector<float>{0, 0, -1, 2});
}

TEST_CASE("device: a stream waits for the mark of another", "[device]") {
  const DeviceCandidate candidate = GENERATE(from_range(DeviceCandidates()));
  INFO(candidate.name);
  const auto device = candidate.make();
  const auto copies = Must(device->NewStream());
  const auto computing = Must(device->NewStream());
  const auto arrived = Must(device->NewEvent());
  ReluFixture relu(*device);
  const float in[4] = {-5, 6, 7, -8};
  float out[4] = {};

  MustOk(copies->CopyToDevice(relu.memory->address(), Bytes(in), sizeof(in)));
  MustOk(copies->Record(*arrived));
  MustOk(computing->WaitFor(*arrived));
  MustOk(relu.kernel->Launch(*computing));
  MustOk(computing->CopyToHost(Bytes(out), relu.memory->address() + 256, sizeof(out)));
  MustOk(computing->Synchronize());

  CHECK(std::vector<float>(out, out + 4) == std::vector<float>{0, 6, 7, 0});
}

TEST_CASE("device: what was recorded is done when it is replayed, as often as that", "[device]") {
  const DeviceCandidate candidate = GENERATE(from_range(DeviceCandidates()));
  INFO(candidate.name);
  const auto device = candidate.make();
  const auto stream = Must(device->NewStream());
  if (!stream->can_record()) {
    CHECK(absl::IsUnimplemented(stream->BeginRecording()));
    return;
  }
  ReluFixture relu(*device);
  const float in[4] = {-1, 2, -3, 4};
  float out[4] = {7, 7, 7, 7};
  MustOk(relu.kernel->Launch(*stream));

  MustOk(stream->BeginRecording());
  MustOk(relu.kernel->Launch(*stream));
  MustOk(stream->CopyOnDevice(relu.memory->address(), relu.memory->address() + 256, 8));
  const auto recording = Must(stream->EndRecording());
  MustOk(stream->CopyToDevice(relu.memory->address(), Bytes(in), sizeof(in)));
  MustOk(stream->CopyToHost(Bytes(out), relu.memory->address() + 256, sizeof(out)));
  MustOk(stream->Synchronize());
  CHECK(std::vector<float>(out, out + 4) == std::vector<float>(4, 0.0f));

  for (int repeat = 0; repeat < 2; ++repeat) {
    MustOk(stream->CopyToDevice(relu.memory->address(), Bytes(in), sizeof(in)));
    MustOk(stream->Replay(*recording));
    MustOk(stream->CopyToHost(Bytes(out), relu.memory->address(), sizeof(out)));
    MustOk(stream->Synchronize());
    CHECK(std::vector<float>(out, out + 4) == std::vector<float>{0, 2, -3, 4});
  }
}

TEST_CASE("device: an implementation that does not exist, or an element type without kernels, is refused", "[device]") {
  const DeviceCandidate candidate = GENERATE(from_range(DeviceCandidates()));
  INFO(candidate.name);
  const auto device = candidate.make();
  const Node node{
      .name = "gemm", .op = OpType::kGemm, .inputs = {"a", "b"}, .outputs = {"y"}, .attributes = GemmAttributes()};
  const device::Operand matrix{.shape = {4, 4}};
  device::KernelRequest request{.node = &node, .inputs = {matrix, matrix}, .outputs = {matrix}};
  const std::string chosen = Must(device->MakeKernel(request))->implementation();

  request.implementation = chosen;
  MustOk(device->Supports(request));
  for (const char* unknown : {"dnnl:of another world", "own:of another world", "another world"}) {
    request.implementation = unknown;
    CHECK_FALSE(device->Supports(request).ok());
    CHECK(device->MakeKernel(request).status() == device->Supports(request));
  }
  request.implementation.clear();
  for (auto* operands : {&request.inputs, &request.outputs}) {
    for (device::Operand& operand : *operands) operand.dtype = DType::kI16;
  }
  CHECK(absl::IsUnimplemented(device->Supports(request)));
}

}  // namespace
}  // namespace lockstep
