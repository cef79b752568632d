// Runs a folder of ONNX's node cases: run_cases DIR. One line for each case that is refused, `CASE: reason`, and for
// each that gives another result, `CASE: WRONG: what`; the last line counts. Exit 1 where a result is wrong.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/conformance/onnx/onnx_case.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  if (argc != 2) {
    std::cerr << "run_cases: takes one folder of cases\n";
    return 64;
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  int passed = 0, refused = 0, wrong = 0;
  for (const std::filesystem::path& folder : folders) {
    const std::string name = folder.filename().string();
    const absl::StatusOr<OnnxCase> test = ReadOnnxCase(folder.string());
    const std::string difference = test.ok() ? RunOnnxCase(*test) : "";
    if (!test.ok()) std::cout << name << ": " << ReasonOf(test.status()) << "\n";
    if (!difference.empty()) std::cout << name << ": WRONG: " << difference << "\n";
    ++(!test.ok() ? refused : difference.empty() ? passed : wrong);
  }
  std::cout << passed << " passed, " << refused << " refused, " << wrong << " wrong\n";
  return wrong == 0 ? 0 : 1;
}
