// What memory of the GPU, and what pinned memory of the host, there is, and what the checker knows of each piece.
//
// Device memory comes out of one range of addresses; an address is given again only when all others were given, so that
// whoever uses memory that was freed is found out.
//
// Threading: thread-compatible; the checker locks (checker.h).
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

  // A place for `bytes` of device memory, whose pages nobody may touch yet; null where there is none.
  std::byte* Take(size_t bytes);
  // REQUIRES: the owner has taken the pages away.
  void GiveBack(std::byte* address);
  void AddPinned(std::byte* address, size_t bytes);
  void RemovePinned(std::byte* address);

  bool InDeviceRange(uintptr_t address) const { return address - base_ < kRange; }
  // The piece that `address` lies in or, within device memory, last before it; null for none.
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
