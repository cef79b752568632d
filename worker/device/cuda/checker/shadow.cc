#include "worker/device/cuda/checker/shadow.h"

#include <sys/mman.h>

#include "common/status/check.h"

namespace lockstep::device::cuda::checker {
namespace {

size_t Words(size_t bytes) { return bytes / 4 + 1; }

// Zeroed, and taken of the machine page by page as it is touched.
template <typename T>
T* Map(size_t count) {
  void* const memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LS_CHECK(memory != MAP_FAILED, "the checker finds addresses for what it notes down");
  return static_cast<T*>(memory);
}

}  // namespace

Shadow::Shadow(size_t bytes)
    : bytes_(bytes),
      words_(Map<Cell>(Words(bytes))),
      split_(Map<Cell>(Words(bytes) * kWord)),
      is_split_(Map<uint8_t>(Words(bytes))) {}

Shadow::~Shadow() {
  munmap(words_, Words(bytes_) * sizeof(Cell));
  munmap(split_, Words(bytes_) * kWord * sizeof(Cell));
  munmap(is_split_, Words(bytes_));
}

}  // namespace lockstep::device::cuda::checker
