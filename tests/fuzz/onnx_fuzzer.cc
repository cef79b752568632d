// ONNX files: read and imported, with constants folded by the reference kernels, and differentiated.
#include <google/protobuf/stubs/logging.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "common/graph/check_trainable.h"
#include "common/graph/onnx/import.h"
#include "tests/fuzz/fuzz_file.h"
#include "worker/device/evaluate_node.h"

namespace {

// A folder of its own: files named by the model are looked for beside it.
const std::string& Folder() {
  static const std::string folder = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep_fuzz_XXXXXX").string();
    LS_CHECK(mkdtemp(pattern.data()) != nullptr, "the folder can be made");
    std::ofstream(pattern + "/weights.bin", std::ios::binary) << std::string(64, '\1');
    atexit([] { std::filesystem::remove_all(Folder()); });
    return pattern;
  }();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  const std::string path = Folder() + "/model.onnx";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << lockstep::fuzz::Text(data, size);
  auto file = lockstep::ReadOnnxFile(path);
  if (!file.ok()) return 0;
  lockstep::OnnxImportOptions options;
  options.evaluate = lockstep::device::EvaluateNode;
  options.batch = 2;
  const auto model = lockstep::ImportOnnx(*std::move(file), options);
  LS_CHECK(model.ok() || !model.status().message().empty(), "a refusal says why");
  if (!model.ok()) return 0;
  const absl::Status training = lockstep::CheckTrainable(model->graph, options.batch);
  LS_CHECK(training.ok() || !training.message().empty(), "a refusal says why");
  return 0;
}
