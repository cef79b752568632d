// Who touched a piece of memory last, and whether whoever touches it now comes after that for certain.
//
// Within a launch an access comes after another one if one thread makes both, or if a barrier of their block lies
// between them, or one of their warp. Nothing orders the blocks of a launch. Shuffles order no memory, as CUDA has it.
// Between operations the clocks of streams decide. A barrier counts as follows: each warp has a time; a barrier of the
// warp moves it on by one, a barrier of the block moves all warps on to one new time.
//
// Threading: thread-compatible; the checker locks (checker.h).
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_ACCESS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_ACCESS_H_

#include <algorithm>
#include <cstdint>

#include "worker/device/cuda/checker/clock.h"

namespace lockstep::device::cuda::checker {

inline constexpr unsigned kWarpThreads = 32;

enum class Who : uint8_t {
  kNobody,
  kSame,    // any number of threads of a launch that store one value, and do nothing else with this memory
  kThread,  // one thread of a kernel, or an operation that is no kernel
  kLanes,   // several of one warp, at one time of it
  kWarps,   // several of one block, since its last barrier
  kBlocks,  // several of one launch
};

struct Access {
  uint32_t operation = 0;  // of the stream in `slot`
  uint32_t block = 0;
  uint32_t time = 0;  // of the warp
  int32_t place = 0;  // in the code (report.h)
  uint16_t thread = 0;
  uint8_t slot = 0;
  Who who = Who::kNobody;
};

// The access that is made now.
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

// What is known of one piece of memory, of four bytes or of one.
class Cell {
 public:
  bool written() const { return write_.who != Who::kNobody; }
  // For shared memory, which holds nothing when a block begins.
  bool written_by_block(const Now& now) const { return written() && now.SameBlock(write_); }
  const Access& last_write() const { return write_; }

  // Whether enough threads have read it for this read to be neither news nor wrong: nobody has written since, and what
  // was written before came before all that could make this access.
  bool IsRead(const Now& now) const {
    if (!now.SameOperation(read_)) return false;
    if (read_.who == Who::kBlocks) return true;
    if (read_.block != now.access.block) return false;
    if (read_.who == Who::kWarps) return read_.time >= now.barrier;
    return read_.time == now.access.time &&
           (read_.who == Who::kLanes ? now.SameWarp(read_) : read_.thread == now.access.thread);
  }

  // Takes the access down. Returns the one that it may not run beside, or null.
  const Access* Read(const Now& now) {
    if (!now.ComesAfter(write_)) return &write_;
    if (now.ComesAfter(read_)) {
      read_ = now.access;
    } else if (now.SameOperation(read_)) {
      const Who both = !now.SameBlock(read_) ? Who::kBlocks : now.SameWarp(read_) ? Who::kLanes : Who::kWarps;
      read_.who = std::max(read_.who, both);
    } else {
      // Another stream reads it, too. Of three such streams the first is forgotten.
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
  // Forgets what was, as in a new block's shared memory.
  void Begin(const Access& write) {
    write_ = write;
    read_ = Access();
    other_ = Access();
  }

 private:
  Access read_;
  Access write_;
  Access other_;  // a read by another stream
};

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_ACCESS_H_
