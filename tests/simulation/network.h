// Simulated network: connections that carry messages in order, each with its own delay, and that can break.
//
// Different connections reorder freely against each other. A direction between two hosts can be blocked (a one-way
// partition): what travels there, the news of a broken connection included, waits until it is open again. What a dying
// process has sent may still arrive before its peers hear of its end.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_NETWORK_H_
#define LOCKSTEP_TESTS_SIMULATION_NETWORK_H_

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

using ConnectionId = int;

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
  ConnectionId next() const { return static_cast<ConnectionId>(connections_.size()); }
  bool open(ConnectionId connection) const { return connections_[connection].open; }
  // Connections that are open now, for the faults to choose from.
  std::vector<ConnectionId> Live() const;

  std::vector<ConnectionId> LiveOf(ProcessId process) const;

  void Block(HostId from, HostId to);
  void Unblock(HostId from, HostId to);
  bool blocked(HostId from, HostId to) const { return blocked_.count({from, to}) > 0; }
  // Runs `action` inside `to` once a message from `from` could have travelled; used by the collectives too.
  void Carry(HostId from, ProcessId to, absl::Duration delay, std::function<void()> action);
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
  std::set<std::pair<HostId, HostId>> blocked_;
  std::map<std::pair<HostId, HostId>, std::vector<std::pair<ProcessId, std::function<void()>>>> held_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_NETWORK_H_
