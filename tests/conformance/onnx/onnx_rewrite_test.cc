// ONNX's own cases, read, written by our writer and read again: they still give what they have to, so every op and
// attribute is written as ONNX means it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/import.h"
#include "common/graph/onnx/onnx_writer.h"
#include "common/storage/local/local_storage.h"
#include "tests/conformance/onnx/onnx_case.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

absl::StatusOr<Tensor> NoVariables(const Variable& variable) {
  return absl::InternalError(absl::StrCat("a case without training has a variable: ", variable.name));
}

absl::StatusOr<Graph> WriteAndRead(const Graph& graph, const std::string& folder) {
  const auto storage = LocalStorage::Create(folder);
  if (!storage.ok()) return storage.status();
  const auto written = WriteOnnx(graph, NoVariables, {}, **storage, "case.onnx");
  if (!written.ok()) return written.status();
  auto file = ReadOnnxFile(folder + "/case.onnx");
  if (!file.ok()) return file.status();
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.trainable = false;
  auto model = ImportOnnx(*std::move(file), options);
  if (!model.ok()) return model.status();
  const absl::Status inferred = InferShapes(&model->graph);
  if (!inferred.ok()) return inferred;
  return std::move(model->graph);
}

// What is written answers; a batch normalisation that gives its moved statistics trains.
bool IsForTraining(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op == OpType::kBatchNormTraining; });
}

TEST_CASE("onnx writer: ONNX's own cases mean the same when they were written again", "[conformance][onnx]") {
  const std::string group = GENERATE("node", "pytorch-converted", "pytorch-operator");
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string folder = absl::StrCat(base == nullptr ? "/tmp" : base, "/onnx_rewrite");
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/libonnx-testdata/data/" + group)) {
    cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  int passed = 0;
  for (const std::filesystem::path& path : cases) {
    absl::StatusOr<OnnxCase> test = ReadOnnxCase(path.string());
    if (!test.ok()) continue;
    INFO(path.filename().string());
    if (IsForTraining(test->graph)) continue;
    const size_t nodes = test->graph.nodes.size();

    absl::StatusOr<Graph> again = WriteAndRead(test->graph, folder);

    INFO(again.status());
    CHECK(again.ok());
    if (!again.ok()) continue;
    CHECK(again->nodes.size() <= nodes);
    test->graph = *std::move(again);
    const std::string difference = RunOnnxCase(*test);
    CHECK(difference == "");
    passed += difference.empty() ? 1 : 0;
  }
  std::cout << group << ": " << passed << " written and read again\n";
  CHECK(passed > 0);
}

}  // namespace
}  // namespace lockstep
