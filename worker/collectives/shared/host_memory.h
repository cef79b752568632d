// The memory that the ranks of one generation on one host read directly from each other. Each rank passes the
// descriptors of its segments to the others over Unix sockets and maps theirs, read-only.
//
// A rank that has told a peer of a range leaves the range alone until the peer says that it has read it, or until it
// has revoked all its ranges: then it may overwrite them at once, without waiting for the peer. So a peer checks after
// every read whether the range was revoked meanwhile, and drops what it read if so. (A seqlock with a single change.)
//
// Invariants
//   * What a dead rank has written stays readable.
//
// Threading: Pass is called by one thread, before the others; these are called by the communicator's thread.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SHARED_HOST_MEMORY_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SHARED_HOST_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/collectives/shared/shared_memory.h"

namespace lockstep::worker {

class HostMemory {
 public:
  // `own`: the memory of this rank. When it is null, or the system has no memory to share, this rank shares none, and
  // still reads what peers share.
  HostMemory(std::shared_ptr<SharedMemory> own, int ranks);

  // Passes the descriptors to the peer at the other end of the Unix socket `fd`, whose send buffer is empty. Does not
  // block. Unavailable: the connection broke.
  absl::Status PassTo(int peer, int fd);
  // Takes and maps what that peer passed. REQUIRES: `fd` is readable. Unavailable: the connection broke, or what came
  // is no sealed memory.
  absl::Status TakeFrom(int peer, int fd);

  // The range of the own memory that `peer` can read as these bytes; none if it cannot.
  std::optional<SharedRange> RangeFor(int peer, const void* begin, size_t bytes) const;
  // The bytes of a range of `peer`; null when it has passed no such memory.
  const char* BytesOf(int peer, const SharedRange& range) const;
  // Whether what was read of `peer`'s ranges so far was what it had written for its peers. False once it has revoked
  // them.
  bool Holds(int peer) const;

  // Invalidates all ranges of the own memory, for all peers: afterwards it may be overwritten. Idempotent.
  void Revoke();

 private:
  struct Peer {
    uint64_t last_passed = 0;  // own segments up to this number are known to it
    SharedMapping flag;        // its flag
    std::map<uint64_t, SharedMapping> segments;
  };

  const std::shared_ptr<SharedMemory> own_;
  SharedSegment flag_;       // a uint32_t that is 1 once the ranges are revoked; empty: nothing is shared
  std::vector<Peer> peers_;  // by rank
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SHARED_HOST_MEMORY_H_
