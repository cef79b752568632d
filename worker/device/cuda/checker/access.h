// Race detection for one piece of memory: records the last accesses, and decides whether a new access happens after
// them.
//
// Within a launch an access happens after another one if the same thread makes both, or if a barrier of their block or
// of their warp lies between them. The blocks of a launch are unordered. Shuffles do not order memory, as in CUDA.
// Accesses of different operations are ordered by the streams' clocks (clock.h). Barriers are counted as times: each
// warp has one; a warp barrier increments it, a block barrier sets all warps to one new time.
//
// Threading: thread-compatible; callers hold the checker's lock (checker.h).
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_ACCESS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_ACCESS_H_

#include <algorithm>
#include <cstdint>

#include "worker/device/cuda/checker/clock.h"

namespace lockstep::device::cuda::checker {

inline constexpr unsigned kWarpThreads = 32;

// The set of threads that an Access stands for.
enum class Who : uint8_t {
  kNobody,
  kSame,    // any threads of a launch that store the same value and access this memory in no other way (StoreSame)
  kThread,  // one thread of a kernel, or an operation that is not a kernel
  kLanes,   // several threads of one warp, at the same time of the warp
  kWarps,   // several threads of one block, since its last barrier
  kBlocks,  // threads of several blocks of one launch
};

struct Access {
  uint32_t operation = 0;  // number of the operation in the stream of `slot`
  uint32_t block = 0;
  uint32_t time = 0;  // of the warp
  int32_t place = 0;  // source location (report.h)
  uint16_t thread = 0;
  uint8_t slot = 0;
  Who who = Who::kNobody;
};

// The access that is being made, with its context.
struct Now {
  Access access;
  uint32_t barrier = 0;          // the time of the block's last barrier
  const Clock* clock = nullptr;  // of the stream

  bool SameOperation(const Access& past) const {
    return past.operation == access.operation && past.slot == access.slot;
  }
  bool SameBlock(const Access& past) const { return SameOperation(past) && past.block == access.block; }
  bool SameWarp(const Access& past) const {
    return SameBlock(past) && past.thread / kWarpThreads == access.thread / kWarpThreads;
  }

  bool ComesAfter(const Access& past) const {
    if (past.who == Who::kNobody) return true;
    if (!SameOperation(past)) return clock->Knows(past.slot, past.operation);
    if (past.who == Who::kSame) return access.who == Who::kSame;
    if (past.who == Who::kBlocks || past.block != access.block) return false;
    if (past.who == Who::kThread && past.thread == access.thread) return true;
    if (past.who != Who::kWarps && SameWarp(past)) return past.time < access.time;
    return past.time < barrier;
  }
};

// The access history of one piece of memory: 1 KiB, four bytes or one byte (shadow.h).
class Cell {
 public:
  bool written() const { return write_.who != Who::kNobody; }
  // For shared memory, whose contents are undefined at the beginning of a block.
  bool written_by_block(const Now& now) const { return written() && now.SameBlock(write_); }
  const Access& last_write() const { return write_; }

  // Whether the recorded reads already cover this one, so that it needs neither a record nor a check: there was no
  // write since, and the last write happened before all accesses that the recorded reads stand for.
  bool IsRead(const Now& now) const {
    if (!now.SameOperation(read_)) return false;
    if (read_.who == Who::kBlocks) return true;
    if (read_.block != now.access.block) return false;
    if (read_.who == Who::kWarps) return read_.time >= now.barrier;
    return read_.time == now.access.time &&
           (read_.who == Who::kLanes ? now.SameWarp(read_) : read_.thread == now.access.thread);
  }

  // Records the access. Returns a past access with which it races, or null.
  const Access* Read(const Now& now) {
    if (!now.ComesAfter(write_)) return &write_;
    if (now.ComesAfter(read_)) {
      read_ = now.access;
    } else if (now.SameOperation(read_)) {
      const Who both = !now.SameBlock(read_) ? Who::kBlocks : now.SameWarp(read_) ? Who::kLanes : Who::kWarps;
      read_.who = std::max(read_.who, both);
    } else {
      // A concurrent read by another stream. Of three such streams the first is forgotten.
      other_ = read_;
      read_ = now.access;
    }
    return nullptr;
  }
  const Access* Write(const Now& now) {
    for (const Access* past : {&write_, &read_, &other_}) {
      if (!now.ComesAfter(*past)) return past;
    }
    Begin(now.access);
    return nullptr;
  }
  // Forgets the history, as for the shared memory of a new block.
  void Begin(const Access& write) {
    write_ = write;
    read_ = Access();
    other_ = Access();
  }

 private:
  Access read_;
  Access write_;
  Access other_;  // a concurrent read by another stream
};

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_ACCESS_H_
