#include "worker/sample/text_writer.h"

#include <catch2/catch.hpp>
#include <set>

#include "common/graph/build/build_metagraph.h"
#include "worker/device/choice/devices.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kLength = 4;

// Every byte's row of a table of 256 x `bytes` scores what follows it; positions do not see each other.
MetaGraph TableModel(int64_t bytes) {
  MetaGraphRequest request;
  Graph graph;
  graph.inputs = {{"tokens", DType::kI64, {kBatchDim, kLength}}};
  graph.variables = {{"table", DType::kF32, {256, bytes}, VariableKind::kParameter, {}}};
  graph.nodes = {{"scores", OpType::kGather, {"table", "tokens"}, {"scores"}, GatherAttributes{}}};
  graph.outputs = {"scores"};
  request.imported = graph;
  request.inputs = {{"tokens", "inputs", InputRole::kFeature, DType::kI64, {kBatchDim, kLength}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, kLength}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 2;
  auto metagraph = BuildMetaGraph(request);
  REQUIRE(metagraph.status() == absl::OkStatus());
  return *std::move(metagraph);
}

// A model whose next byte is mostly the one after this one (score 4), at times the one after that (score 3).
struct Writer {
  Writer() {
    const auto graph = MakeTextGraph(TableModel(256));
    REQUIRE(graph.status() == absl::OkStatus());
    const auto scores = table.elements<float>();
    for (int64_t byte = 0; byte < 256; ++byte) {
      for (int64_t next = 0; next < 256; ++next) scores[static_cast<size_t>(byte * 256 + next)] = -50;
      scores[static_cast<size_t>(byte * 256 + (byte + 1) % 256)] = 4;
      scores[static_cast<size_t>(byte * 256 + (byte + 2) % 256)] = 3;
    }
    device = *device::MakeDevice(device::DeviceKind::kReference, {});
    plan = *Plan::Make(device.get(), *graph, {{"table", table.data()}}, {});
  }
  Tensor table = Tensor::Zeros(DType::kF32, {256, 256});
  std::unique_ptr<device::Device> device;
  std::unique_ptr<Plan> plan;
};

}  // namespace

TEST_CASE("text writer: without temperature the likeliest byte follows, beyond the model's length too", "[sample]") {
  Writer writer;
  std::string heard;

  const auto text = WriteText(*writer.plan, {.prompt = "xa", .bytes = 10, .temperature = 0},
                              [&](char byte) { heard.push_back(byte); });

  REQUIRE(text.status() == absl::OkStatus());
  CHECK(*text == "xabcdefghijk");
  CHECK(heard == "bcdefghijk");
}

TEST_CASE("text writer: with temperature bytes come as often as the model says, the same for one seed", "[sample]") {
  Writer writer;
  const TextOptions options{.prompt = "a", .bytes = 200, .temperature = 1, .seed = 3};

  const std::string text = *WriteText(*writer.plan, options);

  std::map<int, int> steps;
  for (size_t i = 1; i < text.size(); ++i) ++steps[static_cast<unsigned char>(text[i] - text[i - 1])];
  CHECK(steps.size() == 2);
  // e^4 against e^3: 146 of 200, give or take.
  CHECK(steps[1] > 120);
  CHECK(steps[2] > 30);
  CHECK(*WriteText(*writer.plan, options) == text);
  TextOptions other = options;
  other.seed = 4;
  CHECK(*WriteText(*writer.plan, other) != text);
}

TEST_CASE("text writer: it follows weights that have changed, and ends when cancelled", "[sample]") {
  Writer writer;
  const TextOptions options{.prompt = "a", .bytes = 3, .temperature = 0};
  REQUIRE(*WriteText(*writer.plan, options) == "abcd");

  for (size_t byte = 0; byte < 256; ++byte) writer.table.elements<float>()[byte * 256 + (byte + 2) % 256] = 5;
  CHECK(*WriteText(*writer.plan, options) == "aceg");

  writer.plan->Cancel(true);
  CHECK(WriteText(*writer.plan, options).status().code() == absl::StatusCode::kCancelled);
}

TEST_CASE("text writer: a model that does not score bytes is refused with its shape", "[sample]") {
  const auto graph = MakeTextGraph(TableModel(300));

  CHECK(graph.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(graph.status().message()), Catch::Contains("[1, 4, 300]") && Catch::Contains("256 bytes"));
}

}  // namespace lockstep::worker
