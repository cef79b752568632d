// A TCP proxy for tests that forwards every byte after a fixed delay, in both directions, and may change it. It stands
// for a distant peer, and for an attacker on the path.
//
// Threading: thread-safe; a thread for each direction of each connection. The destructor ends and joins them.
#ifndef LOCKSTEP_COMMON_NET_DELAYING_PROXY_H_
#define LOCKSTEP_COMMON_NET_DELAYING_PROXY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep {

class DelayingProxy {
 public:
  // Changes the next bytes of one direction of a connection, of which `offset` bytes were forwarded before. Called by
  // several threads at once.
  using Change = std::function<void(bool to_target, uint64_t offset, std::string& bytes)>;

  // Listens on a free port of the loopback and connects to `target_port` there. `one_way`: the delay of each direction.
  DelayingProxy(int target_port, absl::Duration one_way, Change change = nullptr);
  ~DelayingProxy();

  // "127.0.0.1:PORT"
  std::string address() const;

 private:
  void Accept();
  void Carry(int from, int to, bool to_target);

  const int target_port_;
  const absl::Duration one_way_;
  const Change change_;
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
