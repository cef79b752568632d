// IDX files, plain or gzipped: the input is the file of the inputs, and that of the labels.
#include "tests/fuzz/open_data.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lockstep::fuzz::FuzzFile file(lockstep::fuzz::Text(data, size));
  lockstep::job::DataFiles files;
  files.set_inputs(file.path());
  files.set_labels(file.path());
  files.set_format(lockstep::job::DataFiles::FORMAT_IDX);
  lockstep::fuzz::OpenAndRead(files, lockstep::fuzz::FuzzOptions());
  return 0;
}
