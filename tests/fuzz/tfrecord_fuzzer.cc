// TFRecord files. Checksums keep most changes from going far, so the input is tried twice: as a file, and as the bytes
// of the records of a sound one.
#include <google/protobuf/stubs/logging.h>

#include "tests/fuzz/open_data.h"
#include "worker/data/test_containers.h"

namespace {

void Try(const std::string& bytes) {
  const lockstep::fuzz::FuzzFile file(bytes);
  lockstep::job::DataFiles files;
  files.set_inputs(file.path());
  files.set_format(lockstep::job::DataFiles::FORMAT_TFRECORD);
  lockstep::fuzz::OpenAndRead(files, lockstep::fuzz::FuzzOptions());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  const std::string input = lockstep::fuzz::Text(data, size);
  Try(input);
  const std::string record = lockstep::worker::RecordBytes(input);
  Try(record + record);
  return 0;
}
