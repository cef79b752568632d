// A TCP proxy for tests that resets connections after a number of bytes, like a network that fails in the middle of a
// request or of an answer.
//
// Threading: thread-safe; a thread per connection. The destructor ends and joins them.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_CUTTING_PROXY_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_CUTTING_PROXY_H_

#include <cstdint>

#include "common/net/loopback_server.h"
#include "common/sync/mutex.h"

namespace lockstep {

class CuttingProxy {
 public:
  enum class Way : uint8_t { kRequests, kAnswers };

  // Listens on a free port of the loopback and connects to `target_port` there.
  explicit CuttingProxy(int target_port);

  int port() const { return server_.port(); }
  // Once `bytes` more have passed in direction `way`, drops the following bytes and resets their connection. Does so
  // `times` times, counting from 0 after each.
  void Cut(Way way, uint64_t bytes, int times);
  // The number of connections cut since Cut.
  int cuts() const;

 private:
  void Carry(int client);
  // How many of `count` bytes may pass in that direction; sets `cut` when the connection is to be reset after them.
  uint64_t Allow(Way way, uint64_t count, bool& cut);

  const int target_port_;
  mutable Mutex mutex_;
  Way way_ GUARDED_BY(mutex_) = Way::kRequests;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t left_ GUARDED_BY(mutex_) = 0;
  int times_ GUARDED_BY(mutex_) = 0;
  int cuts_ GUARDED_BY(mutex_) = 0;
  LoopbackServer server_;  // last: it ends first
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_CUTTING_PROXY_H_
