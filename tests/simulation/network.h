// Simulated network: connections that carry messages in order, each with its own delay, and that can break.
//
// Different connections reorder freely against each other. A direction between two hosts can be blocked (a one-way
// partition), for everything or for some channels: what travels there, the news of a broken connection included, waits
// until it is open again. What a dying process has sent may still arrive before its peers hear of its end.
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

// What goes between two hosts over connections of its own.
enum class Channel : uint8_t { kSession, kBeats, kUploads, kPeers };
inline constexpr size_t kChannels = 4;
inline constexpr uint32_t kAllChannels = (1u << kChannels) - 1;
inline constexpr uint32_t Only(Channel channel) { return 1u << static_cast<uint32_t>(channel); }

struct NetworkDelays {
  absl::Duration low = absl::Microseconds(50);
  absl::Duration high = absl::Milliseconds(2);
  // Now and then a message takes up to this long.
  absl::Duration rare = absl::Milliseconds(200);
  int rare_per_mille = 10;
};

class Network {
 public:
  Network(World* world, NetworkDelays delays) : world_(world), delays_(delays) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Connects two processes; `on_reset_a` runs inside `a` when it learns that the connection is gone, likewise for b.
  ConnectionId Open(ProcessId a, ProcessId b, std::function<void()> on_reset_a, std::function<void()> on_reset_b);

  // Runs `deliver` inside the peer of `from`, after everything sent before in this direction. Lost without a sign when
  // the connection is gone.
  void Send(ConnectionId connection, ProcessId from, std::function<void()> deliver);

  // Breaks a connection: what is on its way may or may not arrive, then each side learns of it.
  void Break(ConnectionId connection);
  // The end of a process breaks all that it has.
  void BreakAllOf(ProcessId process);
  // A connection that its own process closes: the peer hears of it, the closer does not.
  void Close(ConnectionId connection, ProcessId by);
  // `by` takes its peer for gone, because nothing came for so long; the peer hears of it once it can.
  void TimeOut(ConnectionId connection, ProcessId by);
  ConnectionId next() const { return static_cast<ConnectionId>(connections_.size()); }
  bool open(ConnectionId connection) const { return connections_[connection].open; }
  // Connections that are open now, for the faults to choose from.
  std::vector<ConnectionId> Live() const;

  std::vector<ConnectionId> LiveOf(ProcessId process) const;
  std::pair<ProcessId, ProcessId> EndsOf(ConnectionId connection) const {
    return {connections_[connection].sides[0].process, connections_[connection].sides[1].process};
  }

  // `channels`: a set of bits. A channel is open again when it was unblocked as often as it was blocked.
  void Block(HostId from, HostId to, uint32_t channels = kAllChannels);
  void Unblock(HostId from, HostId to, uint32_t channels = kAllChannels);
  // Whether any of `channels` is blocked in this direction.
  bool blocked(HostId from, HostId to, uint32_t channels = kAllChannels) const;
  // In either direction.
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
    absl::Time last_arrival = absl::InfinitePast();  // of what this side receives
    absl::Time cut = absl::InfiniteFuture();         // what would arrive later than this is lost
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
  std::map<Way, std::array<int, kChannels>> blocked_;  // how often; no entry where everything is open
  std::map<Way, std::vector<Held>> held_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_NETWORK_H_
