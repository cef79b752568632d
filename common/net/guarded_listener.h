// Accepts connections for a gRPC server, and passes on only those that begin with a ClientHello for one of the job's
// server names (chief_key.h), which holders of a credential send. gRPC reads nothing from other callers, spends no
// memory on them, and makes no signature for them. Docs: docs/design/0021-chief-on-the-wire.md, docs/security.md
// (limits).
//
//   1 connected ──its ClientHello, for a name of the job──▶ (waits for room) ──▶ 2 gRPC's
//       │   └─────its ClientHello, for another name──▶ 3 is shown the chief's certificate ──▶ 4 closed
//       └──5 s, other bytes, or too many others──▶ 4 closed
//
// Invariants
//   * A connection in 1 costs a descriptor and less than 1 KiB; of more than `most_guests` the oldest is closed. At
//     most 16 are in 3, and at most 100 a second get there, since a handshake is expensive.
//   * At most 512 connections in 2 have not yet brought a call with a secret (unproved_connections.h).
//   * It accepts connections as long as it lives. When descriptors run out, it closes the oldest connections of
//     strangers first.
//
// Threading: thread-safe. Owns one thread.
#ifndef LOCKSTEP_COMMON_NET_GUARDED_LISTENER_H_
#define LOCKSTEP_COMMON_NET_GUARDED_LISTENER_H_

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/listen.h"
#include "common/net/rpc.h"
#include "common/net/stranger_answer.h"
#include "common/net/unproved_connections.h"
#include "common/storage/descriptor.h"

namespace lockstep {

class GuardedListener {
 public:
  struct Options {
    std::string token;
    size_t most_guests = 1024;
    // Called for each connection that was refused, with the peer (HOST:PORT) and the reason. On the listener's thread;
    // must not block. Not called when the peer closed the connection before it sent anything: monitors probe ports in
    // that way.
    std::function<void(const std::string& peer, absl::string_view why)> refused;
  };
  // Takes a connection over, which does not block.
  using Admit = std::function<void(int listener, Descriptor connection)>;

  // Listens; no connection is accepted before Start. The error of CannotListen when the address is not available;
  // Internal when no key can be derived from the token.
  static absl::StatusOr<std::unique_ptr<GuardedListener>> Listen(const HostPort& place, Options options);
  // No connection is admitted after this has returned.
  ~GuardedListener();
  GuardedListener(const GuardedListener&) = delete;
  GuardedListener& operator=(const GuardedListener&) = delete;

  int port() const { return listeners_.port; }
  // Called once.
  void Start(Admit admit);
  // To be called when a call with a secret of the job came from `peer`, as gRPC writes it. Until then an admitted
  // connection counts as unproved.
  void Proved(absl::string_view peer) { unproved_.Proved(peer); }

 private:
  struct Guest {
    Descriptor socket;
    int listener = -1;
    sockaddr_storage other = {};
    absl::Time until;
    std::optional<StrangerAnswer> answer;
  };
  using Guests = std::map<uint64_t, Guest>;  // the oldest first

  GuardedListener(Listeners listeners, StrangerAnswerFactory answers, Options options);
  void Serve();
  void ShowOutLate(absl::Time now);
  void Accept(int listener);
  void Watch(Guests::iterator guest);
  void Pause(bool pause);
  // Reads what is available. May remove the guest.
  void Advance(Guests::iterator guest);
  void ReadHello(Guests::iterator guest);
  void AnswerStranger(Guests::iterator guest);
  void AdmitWaiting();
  void ShowOut(Guests::iterator guest, absl::string_view why);
  void Forget(Guests::iterator guest);
  bool IsNameOfTheJob(absl::string_view name) const;

  const Options options_;
  const std::vector<std::string> names_;
  const Listeners listeners_;
  const StrangerAnswerFactory answers_;
  Descriptor epoll_;
  Descriptor wake_read_;
  Descriptor wake_write_;
  UnprovedConnections unproved_;
  Admit admit_;
  // Owned by the thread.
  Guests guests_;
  std::set<uint64_t> waiting_;  // those that may be admitted when there is room
  uint64_t next_guest_;
  size_t answering_ = 0;
  absl::Time answers_since_ = absl::InfinitePast();  // start of the second that answers_begun_ counts in
  int answers_begun_ = 0;
  bool paused_ = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_GUARDED_LISTENER_H_
