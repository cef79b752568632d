// Simulated network: connections that carry messages in order, each with its own delay, and that can break.
//
// Messages of different connections may overtake each other. A direction between two hosts can be blocked (a one-way
// partition), for all channels or some: messages there, and the news of broken connections, wait until it is open
// again. What a dying process has sent may arrive before its peers hear of its end.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_NETWORK_H_
#define LOCKSTEP_TESTS_SIMULATION_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

using ConnectionId = int;

// A kind of traffic that has connections of its own.
enum class Channel : uint8_t { kSession, kBeats, kUploads, kPeers };
inline constexpr size_t kChannels = 4;
inline constexpr uint32_t kAllChannels = (1u << kChannels) - 1;
inline constexpr uint32_t Only(Channel channel) { return 1u << static_cast<uint32_t>(channel); }

struct NetworkDelays {
  absl::Duration low = absl::Microseconds(50);
  absl::Duration high = absl::Milliseconds(2);
  // A few messages take up to this long.
  absl::Duration rare = absl::Milliseconds(200);
  int rare_per_mille = 10;
};

class Network {
 public:
  Network(World* world, NetworkDelays delays) : world_(world), delays_(delays) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Connects two processes. `on_reset_a` runs inside `a` when it learns that the connection is gone; likewise for b.
  ConnectionId Open(ProcessId a, ProcessId b, std::function<void()> on_reset_a, std::function<void()> on_reset_b);

  // Runs `deliver` inside the peer of `from`, after everything that was sent before in this direction. Silently lost if
  // the connection is gone.
  void Send(ConnectionId connection, ProcessId from, std::function<void()> deliver);

  // Breaks a connection: messages in flight may or may not arrive, then each side learns of the break.
  void Break(ConnectionId connection);
  // Breaks all connections of a process that ends.
  void BreakAllOf(ProcessId process);
  // Closes a connection from one side: the peer hears of it, the closer does not.
  void Close(ConnectionId connection, ProcessId by);
  // `by` gives up a silent peer; the peer hears of it once it can.
  void TimeOut(ConnectionId connection, ProcessId by);
  ConnectionId next() const { return static_cast<ConnectionId>(connections_.size()); }
  bool open(ConnectionId connection) const { return connections_[connection].open; }
  // The open connections, from which faults choose.
  std::vector<ConnectionId> Live() const;

  std::vector<ConnectionId> LiveOf(ProcessId process) const;
  std::pair<ProcessId, ProcessId> EndsOf(ConnectionId connection) const {
    return {connections_[connection].sides[0].process, connections_[connection].sides[1].process};
  }

  // `channels`: a set of bits. A channel is open again once it was unblocked as often as it was blocked.
  void Block(HostId from, HostId to, uint32_t channels = kAllChannels);
  void Unblock(HostId from, HostId to, uint32_t channels = kAllChannels);
  // Whether any of `channels` is blocked in this direction.
  bool blocked(HostId from, HostId to, uint32_t channels = kAllChannels) const;
  // Whether any of `channels` is blocked in either direction.
  bool apart(HostId a, HostId b, uint32_t channels = kAllChannels) const {
    return blocked(a, b, channels) || blocked(b, a, channels);
  }
  // Runs `action` inside `to` once a message from `from` could have travelled; used by the collectives too.
  void Carry(HostId from, ProcessId to, absl::Duration delay, Channel channel, std::function<void()> action);
  absl::Duration Delay();

 private:
  struct Side {
    ProcessId process = 0;
    std::function<void()> on_reset;
    absl::Time last_arrival = absl::InfinitePast();  // of messages that this side receives
    absl::Time cut = absl::InfiniteFuture();         // later messages are lost
  };
  struct Connection {
    Side sides[2];
    bool open = true;
  };

  void Arrive(ConnectionId connection, int side, absl::Time when, std::function<void()> deliver);
  void Cut(ConnectionId connection, int side, bool tell);

  World* world_;
  NetworkDelays delays_;
  std::vector<Connection> connections_;
  std::map<ProcessId, std::set<ConnectionId>> of_process_;
  using Way = std::pair<HostId, HostId>;
  struct Held {
    ProcessId to = 0;
    Channel channel = Channel::kSession;
    std::function<void()> action;
  };
  std::map<Way, std::array<int, kChannels>> blocked_;  // how often blocked; no entry if everything is open
  std::map<Way, std::vector<Held>> held_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_NETWORK_H_
