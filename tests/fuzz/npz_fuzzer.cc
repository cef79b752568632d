// npz archives. Checksums keep most changes from going far, so the input is tried twice: as an archive, and as the
// array of a sound one.
#include "tests/fuzz/open_data.h"
#include "worker/data/test_containers.h"
#include "worker/data/test_files.h"

namespace {

void Try(const std::string& bytes) {
  const lockstep::fuzz::FuzzFile file(bytes);
  lockstep::job::DataFiles files;
  files.set_inputs(file.path());
  files.set_format(lockstep::job::DataFiles::FORMAT_NPZ);
  lockstep::fuzz::OpenAndRead(files, lockstep::fuzz::FuzzOptions());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::worker;
  const std::string input = lockstep::fuzz::Text(data, size);
  Try(input);
  const std::string labels = NpyBytes(NpyHeader("<i4", "(2,)"), Bytes<int32_t>({1, 0}));
  Try(ZipBytes({{"x.npy", input, size % 2 == 1}, {"labels.npy", labels}}));
  return 0;
}
