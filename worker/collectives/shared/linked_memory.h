// Two ranks of a host that share memory with each other, for tests.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SHARED_LINKED_MEMORY_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SHARED_LINKED_MEMORY_H_

#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "common/status/check.h"
#include "worker/collectives/shared/host_memory.h"

namespace lockstep::worker {

// A Unix socket and its other end.
struct UnixPair {
  UnixPair() {
    int ends[2];
    LS_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "a pair of sockets can be had");
    one = Descriptor(ends[0]);
    other = Descriptor(ends[1]);
  }
  Descriptor one, other;
};

struct LinkedMemory {
  // Links what the ranks have allocated so far.
  LinkedMemory(std::shared_ptr<SharedMemory> of_zero, std::shared_ptr<SharedMemory> of_one)
      : zero(std::make_unique<HostMemory>(std::move(of_zero), 2)),
        one(std::make_unique<HostMemory>(std::move(of_one), 2)) {
    const UnixPair sockets;
    MustOk(zero->PassTo(1, sockets.one.get()));
    MustOk(one->TakeFrom(0, sockets.other.get()));
    MustOk(one->PassTo(0, sockets.other.get()));
    MustOk(zero->TakeFrom(1, sockets.one.get()));
  }

  std::unique_ptr<HostMemory> zero;  // of rank 0 of 2
  std::unique_ptr<HostMemory> one;   // of rank 1

 private:
  static void MustOk(const absl::Status& status) { LS_CHECK(status.ok(), std::string(status.message()).c_str()); }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SHARED_LINKED_MEMORY_H_
