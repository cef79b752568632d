// Token files, plain or gzipped. The size of the input chooses the sequence length.
#include "tests/fuzz/open_data.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lockstep::fuzz::FuzzFile file(lockstep::fuzz::Text(data, size));
  lockstep::job::DataFiles files;
  files.set_tokens(file.path());
  files.set_sequence_length(static_cast<int64_t>(size % 7) + 1);
  lockstep::fuzz::OpenAndRead(files, lockstep::fuzz::FuzzOptions());
  return 0;
}
