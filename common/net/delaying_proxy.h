// A TCP proxy that hands every byte on a fixed time after it came, in both directions: a distant peer, for tests.
//
// Threading: thread-safe; a thread for each direction of each connection. The destructor ends and joins them.
#ifndef LOCKSTEP_COMMON_NET_DELAYING_PROXY_H_
#define LOCKSTEP_COMMON_NET_DELAYING_PROXY_H_

#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep {

class DelayingProxy {
 public:
  // Listens on a free port of the loopback and connects to `target_port` there. `one_way`: the delay of each direction.
  DelayingProxy(int target_port, absl::Duration one_way);
  ~DelayingProxy();

  // "127.0.0.1:PORT"
  std::string address() const;

 private:
  void Accept();
  void Carry(int from, int to);

  const int target_port_;
  const absl::Duration one_way_;
  int listener_ = -1;
  int port_ = 0;
  Mutex mutex_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::vector<int> sockets_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_DELAYING_PROXY_H_
