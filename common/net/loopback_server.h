// A listener on a free port of the loopback with a thread for each connection, for tests that need a peer of their own.
//
// Threading: thread-safe. The destructor shuts every connection down and waits for its thread.
#ifndef LOCKSTEP_COMMON_NET_LOOPBACK_SERVER_H_
#define LOCKSTEP_COMMON_NET_LOOPBACK_SERVER_H_

#include <netinet/in.h>

#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/sync/mutex.h"

namespace lockstep {

class LoopbackServer {
 public:
  // `serve` is called on a thread of its own for each connection, whose socket is closed when it returns. It returns
  // once the socket is shut down.
  explicit LoopbackServer(std::function<void(int socket)> serve);
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  int port() const { return port_; }
  int connections() const;  // accepted so far

 private:
  void Accept();
  void Serve(int socket);

  const std::function<void(int)> serve_;
  int listener_ = -1;
  int port_ = 0;
  mutable Mutex mutex_;
  bool ended_ GUARDED_BY(mutex_) = false;
  int connections_ GUARDED_BY(mutex_) = 0;
  std::vector<int> sockets_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  std::thread acceptor_;
};

sockaddr_in LoopbackAddress(int port);

// Sends all of `bytes`; false when the connection fails before.
bool SendAll(int socket, absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_LOOPBACK_SERVER_H_
