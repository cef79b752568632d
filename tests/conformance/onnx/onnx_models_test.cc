// ONNX's own backend cases through the importer: nodes, whole models converted from PyTorch, and PyTorch's ops.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/graph/ops/schema.h"
#include "tests/conformance/onnx/onnx_case.h"

namespace lockstep {
namespace {

// Cases that the importer refuses, "group/case: reason" per line: what lies outside of the op set. A case that begins
// to pass has to leave the list, one that is refused has to be in it. LOCKSTEP_SHOW_OUTSIDE=1 prints what it should
// hold.
std::map<std::string, std::string> ReadOutside() {
  std::map<std::string, std::string> outside;
  std::ifstream file("tests/conformance/onnx/outside.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) outside.emplace(line.substr(0, colon), line.substr(colon + 2));
  }
  return outside;
}

// Ops without a case in ONNX 1.12, whose data is installed: they are of a newer opset, and onnx_definitions_test.cc
// computes them from their definition. Of an Identity the importer keeps only the name.
bool HasNoCase(OpType op) {
  static const std::set<OpType>& ops = *new std::set<OpType>{
      OpType::kGelu,    OpType::kMish, OpType::kRmsNormalization, OpType::kGroupNormalization, OpType::kLpNormalization,
      OpType::kIdentity};
  return ops.count(op) != 0;
}

TEST_CASE("onnx import: ONNX's own models give what they have to", "[conformance][onnx]") {
  const std::string group = GENERATE("node", "simple", "pytorch-converted", "pytorch-operator");
  const bool show = std::getenv("LOCKSTEP_SHOW_OUTSIDE") != nullptr;
  const std::map<std::string, std::string> listed = ReadOutside();
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/libonnx-testdata/data/" + group)) {
    folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  int passed = 0, outside = 0, failed = 0;
  std::set<OpType> seen;
  for (const std::filesystem::path& folder : folders) {
    const std::string name = group + "/" + folder.filename().string();
    INFO(name);
    const absl::StatusOr<OnnxCase> test = ReadOnnxCase(folder.string());
    if (!test.ok()) {
      ++outside;
      INFO(test.status().ToString());
      if (show) std::cout << name << ": " << ReasonOf(test.status()) << "\n";
      CHECK((show || listed.count(name) == 1));
      continue;
    }
    CHECK((show || listed.count(name) == 0));
    const std::string difference = RunOnnxCase(*test);
    CHECK(difference == "");
    ++(difference.empty() ? passed : failed);
    for (const Node& node : test->graph.nodes) seen.insert(node.op);
  }
  std::cout << group << ": " << passed << " passed, " << outside << " outside the op set, " << failed << " failed\n";
  CHECK(passed > 0);
  if (group != "node") return;
  for (const OpType op : AllOps()) {
    INFO(std::string(OpName(op)));
    if (OpDomain(op).empty()) CHECK((seen.count(op) == 0) == HasNoCase(op));
  }
}

}  // namespace
}  // namespace lockstep
