#include "common/digest/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <limits>

namespace lockstep {

namespace {

#if defined(__x86_64__)
__attribute__((target("avx"))) void ZeroUpperHalves() { __builtin_ia32_vzeroupper(); }

// ISA-L returns with the upper halves of the vector registers in use. On some CPUs every SSE instruction of this thread
// then costs up to a hundred times as much for as long as they are.
void CleanVectorRegisters() {
  if (__builtin_cpu_supports("avx")) ZeroUpperHalves();
}
#else
void CleanVectorRegisters() {}
#endif

}  // namespace

uint32_t Crc32c(absl::string_view bytes, uint32_t before) {
  uint32_t state = ~before;
  while (!bytes.empty()) {
    const size_t n = std::min<size_t>(bytes.size(), std::numeric_limits<int>::max());
    // The argument is not const, yet it is only read.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(n), state);
    bytes.remove_prefix(n);
  }
  CleanVectorRegisters();
  return ~state;
}

uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace lockstep
