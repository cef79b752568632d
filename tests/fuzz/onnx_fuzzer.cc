// ONNX files: read and imported, with constants folded by the reference kernels, and differentiated.
#include <google/protobuf/stubs/logging.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "common/graph/build/check_trainable.h"
#include "common/graph/onnx/import.h"
#include "protos/onnx.pb.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/graph_words.h"
#include "tests/fuzz/message_mutator.h"
#include "worker/device/choice/evaluate_node.h"

namespace {

// A folder of its own, removed at exit: files named by the model are looked for beside it.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "lockstep_fuzz_XXXXXX").string()) {
    LS_CHECK(mkdtemp(path_.data()) != nullptr, "the folder can be made");
    std::ofstream(path_ + "/weights.bin", std::ios::binary) << std::string(64, '\1');
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const BinaryMutator<onnx::ModelProto> mutator(GraphWords());
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  static const Folder folder;
  const std::string path = folder.path() + "/model.onnx";
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
