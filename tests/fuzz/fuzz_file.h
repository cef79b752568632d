// Shared parts of the fuzz targets: the input as a text, and as a file for readers that take paths.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_FUZZ_FUZZ_FILE_H_
#define LOCKSTEP_TESTS_FUZZ_FUZZ_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/check.h"

// Called by libFuzzer, or by driver.cc, once per input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lockstep::fuzz {

inline std::string Text(const uint8_t* data, size_t size) {
  return std::string(reinterpret_cast<const char*>(data), size);
}

// A file in memory, which exists as long as this object.
class FuzzFile {
 public:
  explicit FuzzFile(absl::string_view bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    LS_CHECK(descriptor_ >= 0, "a file in memory can be made");
    while (!bytes.empty()) {
      const ssize_t count = write(descriptor_, bytes.data(), bytes.size());
      LS_CHECK(count > 0, "a file in memory can be written");
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  ~FuzzFile() { close(descriptor_); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_FUZZ_FILE_H_
