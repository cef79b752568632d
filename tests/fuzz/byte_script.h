// The input of a fuzz target as a script: numbers that say what happens next.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_FUZZ_BYTE_SCRIPT_H_
#define LOCKSTEP_TESTS_FUZZ_BYTE_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::fuzz {

// The input as numbers, one byte each; zeros where it has ended.
class ByteScript {
 public:
  explicit ByteScript(absl::string_view bytes) : bytes_(bytes) {}
  bool ended() const { return bytes_.empty(); }
  uint8_t Next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }
  std::string Next(size_t count) {
    std::string taken(bytes_.substr(0, count));
    bytes_.remove_prefix(taken.size());
    taken.resize(count);
    return taken;
  }

 private:
  absl::string_view bytes_;
};

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_BYTE_SCRIPT_H_
