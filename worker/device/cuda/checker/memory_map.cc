#include "worker/device/cuda/checker/memory_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "common/status/check.h"
#include "worker/device/cuda/checker/checker.h"

namespace lockstep::device::cuda::checker {
namespace {

void* Reserve(size_t bytes, int protection) {
  void* const memory = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LS_CHECK(memory != MAP_FAILED, "host execution finds addresses for device memory");
  return memory;
}

}  // namespace

MemoryMap::MemoryMap()
    : base_((reinterpret_cast<uintptr_t>(Reserve(kRange + kChunk, PROT_NONE)) + kChunk - 1) / kChunk * kChunk),
      of_chunk_(static_cast<Piece**>(Reserve(kRange / kChunk * sizeof(Piece*), PROT_READ | PROT_WRITE))) {}

std::byte* MemoryMap::Take(size_t bytes) {
  // A page behind the memory stays closed.
  const size_t chunks = (bytes + 2 * 4096) / kChunk + 1;
  constexpr size_t kAll = kRange / kChunk;
  size_t free = 0;
  for (size_t tried = 0; tried < 2 * kAll && free < chunks; ++tried) {
    if (next_ == kAll) next_ = free = 0;
    free = of_chunk_[next_++] == nullptr ? free + 1 : 0;
  }
  if (free < chunks) return nullptr;
  const size_t first = next_ - chunks;
  const uintptr_t address = base_ + first * kChunk;
  Piece& piece = device_[address];
  piece.address = address;
  piece.bytes = bytes;
  piece.shadow = std::make_unique<Shadow>(kChecks ? bytes : 0);
  std::fill_n(of_chunk_ + first, chunks, &piece);
  return reinterpret_cast<std::byte*>(address);
}

void MemoryMap::GiveBack(std::byte* address) {
  const auto at = device_.find(reinterpret_cast<uintptr_t>(address));
  LS_CHECK(at != device_.end(), "device memory is freed once, by its address");
  const size_t first = (at->first - base_) / kChunk;
  for (size_t chunk = first; of_chunk_[chunk] == &at->second; ++chunk) of_chunk_[chunk] = nullptr;
  device_.erase(at);
}

void MemoryMap::AddPinned(std::byte* address, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  Piece& piece = pinned_[at];
  piece.address = at;
  piece.bytes = bytes;
  piece.pinned = true;
  piece.shadow = std::make_unique<Shadow>(kChecks ? bytes : 0);
}

void MemoryMap::RemovePinned(std::byte* address) { pinned_.erase(reinterpret_cast<uintptr_t>(address)); }

Piece* MemoryMap::Pinned(uintptr_t address) {
  auto after = pinned_.upper_bound(address);
  return after == pinned_.begin() ? nullptr : &std::prev(after)->second;
}

}  // namespace lockstep::device::cuda::checker
