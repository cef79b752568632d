#include "worker/device/cuda/checker/shadow.h"

#include <sys/mman.h>

#include "common/status/check.h"

namespace lockstep::device::cuda::checker {
namespace {

// Zeroed, and taken of the machine page by page as it is touched.
template <typename T>
T* MapZeroed(size_t count) {
  void* const memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LS_CHECK(memory != MAP_FAILED, "the checker finds addresses for what it notes down");
  return static_cast<T*>(memory);
}

}  // namespace

Shadow::Shadow(size_t bytes)
    : bytes_(bytes),
      pages_(MapZeroed<Cell>(pages())),
      is_expanded_(MapZeroed<bool>(pages())),
      words_(MapZeroed<Cell>(pages() * kPage / kWord)),
      is_split_(MapZeroed<bool>(pages() * kPage / kWord)),
      split_(MapZeroed<Cell>(pages() * kPage)) {}

Shadow::~Shadow() {
  munmap(pages_, pages() * sizeof(Cell));
  munmap(is_expanded_, pages());
  munmap(words_, pages() * kPage / kWord * sizeof(Cell));
  munmap(is_split_, pages() * kPage / kWord);
  munmap(split_, pages() * kPage * sizeof(Cell));
}

}  // namespace lockstep::device::cuda::checker
