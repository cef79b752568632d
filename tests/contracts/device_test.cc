// What every device promises: the same suite for the reference, the CPU, and both behind a device that postpones
// everything until somebody waits. And the CPU's kernels against the reference's, op by op.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "common/graph/graph_editor.h"
#include "common/graph/training_graph.h"
#include "tests/contracts/device_cases.h"
#include "worker/device/deferred/make_device.h"
#include "worker/device/devices.h"
#include "worker/device/kernel.h"
#include "worker/plan/plan.h"

namespace lockstep {
namespace {

using device::Device;
using device::DeviceKind;
using worker::Plan;

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

struct Candidate {
  const char* name;
  DeviceKind kind;
  bool deferred;
};

constexpr Candidate kCandidates[] = {{"reference", DeviceKind::kReference, false},
                                     {"cpu", DeviceKind::kCpu, false},
                                     {"deferred reference", DeviceKind::kReference, true},
                                     {"deferred cpu", DeviceKind::kCpu, true}};

std::unique_ptr<Device> Make(const Candidate& candidate, int threads = 1) {
  std::unique_ptr<Device> device = Must(device::MakeDevice(candidate.kind, {.threads = threads}));
  return candidate.deferred ? device::MakeDeferredDevice(std::move(device)) : std::move(device);
}

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
  const Candidate candidate = GENERATE(from_range(std::begin(kCandidates), std::end(kCandidates)));
  INFO(candidate.name);
  const auto device = Make(candidate);
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
  const Candidate candidate = GENERATE(from_range(std::begin(kCandidates), std::end(kCandidates)));
  INFO(candidate.name);
  const auto device = Make(candidate);
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
  const Candidate candidate = GENERATE(from_range(std::begin(kCandidates), std::end(kCandidates)));
  INFO(candidate.name);
  const auto device = Make(candidate);
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

TEST_CASE("device: an implementation that does not exist, or an element type without kernels, is refused", "[device]") {
  const Candidate candidate = GENERATE(from_range(std::begin(kCandidates), std::end(kCandidates)));
  INFO(candidate.name);
  const auto device = Make(candidate);
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

TEST_CASE("device: an instruction set that this machine lacks is refused", "[device]") {
  for (const DeviceKind kind : {DeviceKind::kReference, DeviceKind::kCpu}) {
    const auto device = device::MakeDevice(kind, {.instruction_set = "sparc_v9"});
    REQUIRE(absl::IsInvalidArgument(device.status()));
    CHECK_THAT(std::string(device.status().message()), Catch::Matchers::Contains("sparc_v9"));
  }
  CHECK(absl::IsInvalidArgument(device::MakeDevice(DeviceKind::kCpu, {.threads = 0}).status()));
}

// --- op by op ---

using Values = std::map<std::string, std::vector<double>>;

// One host tensor per input: floats in [-1, 1), or their absolute values; positive where a variance is meant; labels
// 0, 1 or 2; a mask of zeros and ones; few different numbers where ties matter.
std::vector<Tensor> RandomInputs(const std::vector<TensorSpec>& specs, uint64_t seed, bool absolute) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs) {
    Tensor tensor = Tensor::Zeros(spec.dtype, spec.shape);
    const RandomStream stream = RandomStream::For(seed, StreamOfName(spec.name));
    for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
      const uint32_t bits = stream.At(i);
      const float value = SymmetricUnit(bits);
      if (spec.dtype == DType::kI64) {
        tensor.elements<int64_t>()[i] = bits % 3;
      } else if (spec.dtype == DType::kI32) {
        tensor.elements<int32_t>()[i] = static_cast<int32_t>(bits % 3);
      } else if (spec.dtype == DType::kBool) {
        tensor.elements<bool>()[i] = bits % 2 == 1;
      } else if (spec.name == "coarse") {
        tensor.elements<float>()[i] = 0.5f * static_cast<float>(bits % 4);
      } else if (spec.name == kMaskInput) {
        tensor.elements<float>()[i] = static_cast<float>(bits % 2);
      } else {
        tensor.elements<float>()[i] = spec.name == "variance" ? 1.5f + value : absolute ? std::fabs(value) : value;
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

template <typename T>
void Append(const std::vector<std::byte>& bytes, std::vector<double>* values) {
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values->push_back(static_cast<double>(value));
  }
}

Values RunCase(Device& device, const Graph& graph, uint64_t seed, bool absolute) {
  const auto plan = Must(Plan::Make(&device, graph, {}, {}));
  const std::vector<Tensor> tensors = RandomInputs(plan->inputs(), seed, absolute);
  std::vector<const std::byte*> addresses;
  for (const Tensor& tensor : tensors) addresses.push_back(tensor.data());
  MustOk(plan->RefreshVariables());
  MustOk(plan->RunPass(addresses, {.seed = seed, .step = 3, .logical_shard = 2, .pass = 1}));
  Values values;
  for (size_t i = 0; i < plan->outputs().size(); ++i) {
    const TensorSpec& output = plan->outputs()[i];
    std::vector<std::byte> bytes(static_cast<size_t>(NumElements(output.shape)) * DTypeSize(output.dtype));
    MustOk(plan->ReadOutput(static_cast<int>(i), absl::MakeSpan(bytes)));
    std::vector<double>* to = &values[output.name];
    if (output.dtype == DType::kF32) Append<float>(bytes, to);
    if (output.dtype == DType::kI32) Append<int32_t>(bytes, to);
    if (output.dtype == DType::kI64) Append<int64_t>(bytes, to);
    if (output.dtype == DType::kBool) Append<uint8_t>(bytes, to);
  }
  return values;
}

// Sums of products: |error| <= terms * eps * (the same sum of absolute values), for any order of summation, plus the
// reference's own rounding. Others: a multiple of eps of the largest element, which covers what cancels inside them.
void CompareCase(const DeviceCase& c, const Values& expected, const Values& got, const Values& magnitudes) {
  constexpr double kEps = 0x1p-24;
  for (const auto& [name, reference] : expected) {
    INFO(name);
    const std::vector<double>& values = got.at(name);
    REQUIRE(values.size() == reference.size());
    double largest = 1e-3;
    for (const double value : reference) largest = std::max(largest, std::fabs(value));
    if (!c.scale.empty()) {
      for (const double value : expected.at(c.scale)) largest = std::max(largest, std::fabs(value));
    }
    int wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double scale = c.sums_of_products ? magnitudes.at(name)[i] : largest;
      const double allowed = (static_cast<double>(c.terms) + 8) * kEps * scale + 1e-30;
      if (!(std::fabs(values[i] - reference[i]) <= allowed) && ++wrong == 1) {
        CAPTURE(i, values[i], reference[i], allowed);
        CHECK(std::fabs(values[i] - reference[i]) <= allowed);
      }
    }
    CHECK(wrong == 0);
  }
}

// LOCKSTEP_TEST_SEED repeats the case of that seed for every op.
std::vector<uint64_t> Seeds() {
  if (const char* seed = std::getenv("LOCKSTEP_TEST_SEED"); seed != nullptr) return {std::strtoull(seed, nullptr, 10)};
  std::vector<uint64_t> seeds(15);
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i] = 1000 + i;
  return seeds;
}

TEST_CASE("device: the cpu computes what the reference computes, for every op over random shapes", "[device]") {
  const auto reference = Make(kCandidates[0]);
  const auto cpu = Make(kCandidates[1]);

  for (const OpType op : AllOps()) {
    for (const uint64_t seed : Seeds()) {
      INFO("LOCKSTEP_TEST_SEED=" << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      const Values expected = RunCase(*reference, c.graph, seed, false);
      const Values got = RunCase(*cpu, c.graph, seed, false);
      CompareCase(c, expected, got, c.sums_of_products ? RunCase(*reference, c.graph, seed, true) : expected);
    }
  }
}

// The implementation that a device chooses for the last node of a graph.
std::string ChosenFor(Device& device, const Graph& graph) {
  const Node& node = graph.nodes.back();
  device::KernelRequest request{.node = &node};
  for (const auto& [names, operands] :
       {std::pair(&node.inputs, &request.inputs), std::pair(&node.outputs, &request.outputs)}) {
    for (const std::string& name : *names) {
      operands->push_back({.dtype = graph.values.at(name).dtype, .shape = graph.values.at(name).shape});
    }
  }
  return Must(device.MakeKernel(request))->implementation();
}

TEST_CASE("device: what networks spend their time in never falls to the reference on the cpu", "[device]") {
  const auto cpu = Make(kCandidates[1]);
  for (const OpType op :
       {OpType::kConv, OpType::kConvGradInput, OpType::kConvGradWeight, OpType::kConvTranspose, OpType::kMaxPool,
        OpType::kMaxPoolWithArgmax, OpType::kMaxPoolGrad, OpType::kAveragePool, OpType::kAveragePoolGrad,
        OpType::kGlobalAveragePool, OpType::kGlobalMaxPool, OpType::kBatchNormTraining, OpType::kBatchNormGrad,
        OpType::kBatchNormFrozenGrad, OpType::kLayerNormalization, OpType::kLayerNormGrad, OpType::kRmsNormalization,
        OpType::kRmsNormGrad}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      CHECK(ChosenFor(*cpu, c.graph) != "reference");
    }
  }
}

TEST_CASE("device: several threads compute the same, and the same bits every time", "[device]") {
  const auto reference = Make(kCandidates[0]);
  const auto cpu = Make(kCandidates[1], 2);
  CHECK(cpu->info().threads == 2);

  for (const OpType op : AllOps()) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      const Values expected = RunCase(*reference, c.graph, seed, false);
      const Values got = RunCase(*cpu, c.graph, seed, false);
      CompareCase(c, expected, got, c.sums_of_products ? RunCase(*reference, c.graph, seed, true) : expected);
      CHECK(got == RunCase(*cpu, c.graph, seed, false));
    }
  }
}

// The same with a node behind every input and output of F32, so that the op's own operands and results are values of
// the plan, which may share memory.
Graph Within(const Graph& graph) {
  Graph within = graph;
  within.nodes.clear();
  within.values.clear();
  const auto is_f32 = [&](const std::string& name) { return graph.values.at(name).dtype == DType::kF32; };
  const auto copy = [&](const std::string& from, const std::string& to) {
    within.nodes.push_back({"copy of " + from, OpType::kScale, {from}, {to}, ScaleAttributes{1.0}});
  };
  std::map<std::string, std::string> inner;
  for (const GraphInput& input : graph.inputs) {
    if (!is_f32(input.name)) continue;
    inner[input.name] = "inner " + input.name;
    copy(input.name, inner[input.name]);
  }
  for (Node node : graph.nodes) {
    for (std::string& name : node.inputs) name = inner.count(name) > 0 ? inner[name] : name;
    within.nodes.push_back(std::move(node));
  }
  for (std::string& output : within.outputs) {
    if (!is_f32(output)) continue;
    copy(output, "outer " + output);
    output = "outer " + output;
  }
  MustOk(InferShapes(&within));
  return within;
}

TEST_CASE("device: sharing memory changes no bit, for every op", "[device]") {
  const auto cpu = Make(kCandidates[1]);

  for (const OpType op : AllOps()) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      const Values plain = RunCase(*cpu, c.graph, seed, false);
      const Graph within = Within(c.graph);
      const Values shared = RunCase(*cpu, within, seed, false);
      for (size_t i = 0; i < within.outputs.size(); ++i) {
        INFO(within.outputs[i]);
        const auto& expected = plain.at(c.graph.outputs[i]);
        const auto& got = shared.at(within.outputs[i]);
        REQUIRE(expected.size() == got.size());
        for (size_t j = 0; j < got.size(); ++j) {
          if (std::isnan(expected[j]) && std::isnan(got[j])) continue;
          REQUIRE(expected[j] == got[j]);
        }
      }
    }
  }
}

TEST_CASE("device: postponing everything changes no bit, for every op", "[device]") {
  const auto at_once = Make(kCandidates[1]);
  const auto deferred = Make(kCandidates[3]);

  for (const OpType op : AllOps()) {
    INFO(OpName(op));
    Dice dice(static_cast<uint64_t>(op));
    const DeviceCase c = RandomCase(op, dice);
    CHECK(RunCase(*at_once, c.graph, 9, false) == RunCase(*deferred, c.graph, 9, false));
  }
}

}  // namespace
}  // namespace lockstep
