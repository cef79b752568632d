// The allocations of device memory and of pinned host memory, each with its shadow.
//
// Device memory comes from one range of addresses, and a freed address is reused only when all others were used, so
// that a use after free is detected.
//
// Threading: thread-compatible; callers hold the checker's lock (checker.h).
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_MEMORY_MAP_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_MEMORY_MAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "worker/device/cuda/checker/shadow.h"

namespace lockstep::device::cuda::checker {

struct Piece {
  uintptr_t address = 0;
  size_t bytes = 0;
  bool pinned = false;
  std::unique_ptr<Shadow> shadow;
  Clock used;  // the last operation of each stream that touched it

  bool Has(uintptr_t at, size_t count) const {
    return at >= address && count <= bytes && at - address <= bytes - count;
  }
};

class MemoryMap {
 public:
  MemoryMap();

  // Reserves addresses for `bytes` of device memory, without accessible pages; null when the range is exhausted.
  std::byte* Take(size_t bytes);
  // REQUIRES: the owner has made the pages inaccessible.
  void GiveBack(std::byte* address);
  void AddPinned(std::byte* address, size_t bytes);
  void RemovePinned(std::byte* address);

  bool InDeviceRange(uintptr_t address) const { return address - base_ < kRange; }
  // The piece that contains `address`, or within the device range the last one before it; null for none.
  Piece* Device(uintptr_t address) const {
    return InDeviceRange(address) ? of_chunk_[(address - base_) / kChunk] : nullptr;
  }
  Piece* Pinned(uintptr_t address);

 private:
  static constexpr size_t kChunk = size_t{1} << 20;
  static constexpr size_t kRange = size_t{1} << 39;

  uintptr_t base_ = 0;
  Piece** of_chunk_ = nullptr;
  size_t next_ = 0;  // chunk
  std::map<uintptr_t, Piece> device_;
  std::map<uintptr_t, Piece> pinned_;
};

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_MEMORY_MAP_H_
