// Simulated collectives: groups of processes that connect and then exchange values, one exchange at a time.
//
// An exchange completes once every rank has entered it; each rank then receives all contributions after a delay of its
// own. If a group breaks in between, some ranks have the result and the others an error, as in a real ring, so ranks
// differ by at most one exchange.
//
// With limits, a rank that waits for a peer that cannot answer breaks the group after a while and names that peer. A
// slow peer that answers is waited for.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_FABRIC_H_
#define LOCKSTEP_TESTS_SIMULATION_FABRIC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/network.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

// Names a group as (term, counter) of its generation.
struct GroupKey {
  uint64_t term = 0;
  uint64_t counter = 0;
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

using Contribution = std::vector<uint64_t>;
using Gathered = std::shared_ptr<const std::vector<Contribution>>;  // one per rank; shared by the ranks
using ConnectDone = std::function<void(absl::Status)>;
using ExchangeDone = std::function<void(absl::StatusOr<Gathered>)>;

// The limits after which a rank gives up, as in the communicator of a worker.
struct FabricLimits {
  absl::Duration form = absl::InfiniteDuration();    // while it connects
  absl::Duration answer = absl::InfiniteDuration();  // in an exchange, if a peer gives no sign of life
};

class Fabric {
 public:
  // `on_mismatch` is called if ranks entered different exchanges, which is always a bug of the protocol, never of the
  // network.
  Fabric(World* world, Network* network, std::function<void(std::string)> on_mismatch)
      : world_(world), network_(network), on_mismatch_(std::move(on_mismatch)) {}
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // `done` runs once all `size` ranks have connected, or with Aborted.
  void Connect(GroupKey key, int rank, int size, ProcessId process, ConnectDone done);
  // `what` names the exchange; all ranks must agree on it. REQUIRES: connected, and no exchange of this rank under way.
  void Exchange(GroupKey key, int rank, const std::string& what, Contribution mine, ExchangeDone done);
  // This rank gives up: its pending call fails now, the calls of the others soon.
  void Abort(GroupKey key, int rank);
  void ProcessDied(ProcessId process);
  // From now on ranks give up after `limits`.
  void Watch(FabricLimits limits);
  // The rank that this one blamed when its group broke; -1: none.
  int SuspectOf(GroupKey key, int rank) const;
  // A connection inside the group breaks; every rank gets an error.
  void Break(GroupKey key);
  // The unbroken groups, from which faults choose.
  std::vector<GroupKey> Live() const;
  std::vector<ProcessId> ProcessesOf(GroupKey key) const;

 private:
  struct Member {
    ProcessId process = -1;
    bool entered = false;
    bool aborted = false;
    absl::Time cut = absl::InfiniteFuture();  // later results become errors
    ConnectDone connect_done;
    std::string what;
    Contribution mine;
    ExchangeDone exchange_done;
    uint64_t call = 0;  // numbers the calls of this rank
    absl::Time since;   // when the newest call began
    int suspect = -1;
  };
  struct Group {
    std::vector<Member> members;
    bool broken = false;
  };

  void Fail(Group& group, int rank, absl::string_view why);
  void BreakGroup(GroupKey key, int except, absl::string_view why);
  void MaybeComplete(GroupKey key);
  void Deliver(GroupKey key, int rank, const Gathered& gathered);
  void Look();
  void GiveUpLate(GroupKey key, Group& group, int rank);
  // A member from which `rank` receives no sign of life; -1: none.
  int Unreachable(const Group& group, int rank) const;

  World* world_;
  Network* network_;
  std::function<void(std::string)> on_mismatch_;
  FabricLimits limits_;
  std::map<GroupKey, Group> groups_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_FABRIC_H_
