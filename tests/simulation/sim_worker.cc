#include "tests/simulation/sim_worker.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/sim_chief.h"

namespace lockstep::simulation {
namespace {

worker::SessionConfig Config(int slot, const Incarnation& incarnation) {
  worker::SessionConfig config;
  config.incarnation = incarnation;
  config.preferred_name = absl::StrCat("worker-", slot);
  config.host = absl::StrCat("host-", slot);
  config.peer_address = absl::StrCat("host-", slot, ":", incarnation.low);
  config.device = "simulated";
  return config;
}

}  // namespace

SimWorker::SimWorker(Cluster* cluster, int slot, ProcessId process, Incarnation incarnation)
    : cluster_(cluster),
      slot_(slot),
      process_(process),
      name_(absl::StrCat("worker-", slot)),
      incarnation_(incarnation),
      core_(Config(slot, incarnation)) {}

void SimWorker::Trace(const std::string& what) const {
  world().Trace(absl::StrCat(name_, "#", incarnation_.low), what);
}

void SimWorker::Start() {
  Step(worker::Tick{});
  After(absl::Milliseconds(500), [this] { Heartbeat(); });
}

void SimWorker::Terminate(absl::Duration grace) { Step(worker::TermSignal{grace}); }

void SimWorker::Step(const worker::Event& event) {
  if (world().tracing() && !std::holds_alternative<worker::Tick>(event)) {
    Trace(absl::StrCat("<- ", Describe(event)));
  }
  for (const worker::Action& action : core_.Step(world().now(), event)) {
    if (world().tracing() && !std::holds_alternative<worker::SetPhase>(action)) {
      Trace(absl::StrCat("   -> ", Describe(action)));
    }
    std::visit([this](const auto& a) { Perform(a); }, action);
    if (!world().alive(process_)) return;
  }
  ScheduleTick();
}

void SimWorker::ScheduleTick() {
  const absl::Time next = std::min(core_.NextDeadline(), world().now() + absl::Milliseconds(500));
  const absl::Time when = std::max(next, world().now() + absl::Microseconds(100));
  if (when >= tick_at_) return;
  tick_at_ = when;
  world().At(process_, when, [this, when] {
    if (tick_at_ != when) return;
    tick_at_ = absl::InfiniteFuture();
    Step(worker::Tick{});
  });
}

// ---- The session ----------------------------------------------------------------------------------------------------

void SimWorker::Perform(const worker::Connect&) {
  SimChief* chief = cluster_->ChiefAtAddress();
  Network& network = *cluster_->network;
  if (chief == nullptr || !world().alive(chief->process())) {
    After(network.Delay(), [this] { Step(worker::ChiefDisconnected{"connection refused", false}); });
    return;
  }
  const ConnectionId id = cluster_->NextConnection();
  network.Open(
      process_, chief->process(),
      [this, id] {
        if (connection_ == id) ConnectionLost("the stream was reset");
      },
      [chief, id] { chief->Reset(id); });
  connection_ = id;
  chief_ = chief;
  connected_ = false;
  network.Send(id, process_, [this, chief, id] {
    chief->Opened(id, incarnation_);
    cluster_->network->Send(id, chief->process(), [this, id] {
      if (connection_ != id) return;
      connected_ = true;
      Step(worker::ChiefConnected{});
    });
  });
  After(absl::Seconds(3), [this, id] {
    if (connection_ != id || connected_) return;
    cluster_->network->Close(id, process_);
    ConnectionLost("no answer to a connection attempt");
  });
}

void SimWorker::ConnectionLost(const std::string& reason) {
  connection_.reset();
  connected_ = false;
  Step(worker::ChiefDisconnected{reason, false});
}

void SimWorker::Perform(const worker::Disconnect&) {
  if (connection_.has_value()) cluster_->network->Close(*connection_, process_);
  connection_.reset();
  connected_ = false;
}

void SimWorker::Perform(const worker::Send& action) {
  if (!connection_.has_value()) return;
  std::visit([this](const auto& m) { cluster_->Cover(std::decay_t<decltype(m)>::kTypeName); }, action.message);
  const ConnectionId id = *connection_;
  cluster_->network->Send(id, process_, [chief = chief_, id, fence = action.fence, message = action.message] {
    chief->Received(id, fence, message);
  });
}

void SimWorker::Receive(ConnectionId connection, ChiefFence fence, ChiefCommand command) {
  if (connection_ == connection && connected_) Step(worker::CommandReceived{fence, std::move(command)});
}

void SimWorker::Perform(const worker::SetPhase& action) { phase_ = action; }

void SimWorker::Heartbeat() {
  After(absl::Milliseconds(500), [this] { Heartbeat(); });
  if (!connected_ || !phase_.has_value()) return;
  lockstep::Heartbeat beat;
  beat.phase = phase_->phase;
  if (busy_.has_value() && waits_for_peer_) beat.phase = lockstep::Heartbeat::Phase::kWaitingForPeer;
  beat.progress = progress_;
  beat.position = phase_->position;
  SimChief* chief = chief_;
  Network* network = cluster_->network.get();
  network->Carry(world().host(process_), chief->process(), network->Delay(),
                 [this, chief, network, beat, fence = phase_->fence] {
                   chief->HeartbeatCame(fence, beat);
                   network->Carry(world().host(chief->process()), process_, network->Delay(), [this, chief] {
                     if (chief_ == chief) Step(worker::BeatAnswered{chief->term()});
                   });
                 });
}

void SimWorker::Perform(const worker::Announce&) {}

void SimWorker::Perform(const worker::Exit& action) {
  if (action.code == 75) cluster_->Cover("worker exits with 75");
  if (action.code == 69) cluster_->Cover("worker exits with 69");
  cluster_->WorkerExited(this, action.code);
}

// ---- Preparing ------------------------------------------------------------------------------------------------------

void SimWorker::Perform(const worker::MakeKernelPlan&) {
  After(world().random().Between(absl::Milliseconds(20), absl::Milliseconds(400)), [this] {
    Step(worker::PlanFinished{PlanMade{absl::StrCat("plan-of-", incarnation_.low), "the plan", "data"}});
  });
}

void SimWorker::Perform(const worker::PrepareReplica& action) {
  After(world().random().Between(absl::Milliseconds(10), absl::Milliseconds(800)), [this, action] {
    Step(worker::Prepared{
        Ready{action.plan_hash, "data", absl::Milliseconds(10), sizeof(ReplicaState), action.settings}});
  });
}

void SimWorker::Perform(const worker::TestConnections& action) {
  PeersTested result;
  result.round = action.round;
  for (const Member& peer : action.peers) {
    const SimWorker* other = cluster_->WorkerOf(peer.incarnation);
    const HostId here = world().host(process_);
    const bool reached = other != nullptr && world().alive(other->process()) &&
                         !cluster_->network->blocked(here, world().host(other->process())) &&
                         !cluster_->network->blocked(world().host(other->process()), here);
    (reached ? result.reached : result.failed).push_back(peer.incarnation);
  }
  if (!result.failed.empty()) result.message = "no answer";
  After(result.failed.empty() ? cluster_->network->Delay() : absl::Seconds(1),
        [this, result] { Step(worker::PeersTestedHere{result}); });
}

// ---- Forming --------------------------------------------------------------------------------------------------------

void SimWorker::Perform(const worker::FormCommunicator& action) {
  if (busy_.has_value()) {
    cluster_->oracle->Violation(absl::StrCat(name_, ": forms a communicator while a ", busy_with_, " is under way"));
  }
  generation_ = action.generation;
  rank_ = action.rank;
  size_ = static_cast<uint32_t>(action.members.size());
  store_.clear();
  group_entered_ = false;
  group_aborted_ = false;
  if (connection_.has_value() && phase_.has_value()) {
    Perform(worker::Send{phase_->fence, StoreSet{generation_, absl::StrCat("rank/", rank_), "address"}, ""});
  }
  MaybeConnectGroup();
}

void SimWorker::Perform(const worker::DeliverStore& action) {
  if (action.generation != generation_) return;
  store_.insert(action.key);
  MaybeConnectGroup();
}

void SimWorker::MaybeConnectGroup() {
  if (group_entered_ || group_aborted_) return;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && store_.count(absl::StrCat("rank/", rank)) == 0) return;
  }
  group_entered_ = true;
  const Generation generation = generation_;
  fabric().Connect(Key(), static_cast<int>(rank_), static_cast<int>(size_), process_,
                   [this, generation](absl::Status s) {
                     if (s.ok()) {
                       Step(worker::CommunicatorFormed{generation});
                     } else {
                       Step(worker::CollectiveFailed{generation, {}, false, std::string(s.message())});
                     }
                   });
}

void SimWorker::Perform(const worker::AbortCollectives& action) {
  if (action.generation != generation_) return;
  group_aborted_ = true;
  if (group_entered_) fabric().Abort(Key(), static_cast<int>(rank_));
}

bool SimWorker::Begin(const Generation& generation, const char* what) {
  if (busy_.has_value() || generation != generation_) {
    cluster_->oracle->Violation(
        absl::StrCat(name_, ": begins a ", what, " of generation ", generation.ToString(),
                     busy_.has_value() ? " while something else runs" : " without being in it"));
    return false;
  }
  busy_ = generation;
  busy_with_ = what;
  return true;
}

void SimWorker::End() {
  busy_.reset();
  waits_for_peer_ = false;
  ++progress_;
}

void SimWorker::Perform(const worker::StopComputing& action) {
  stop_ = action.generation;
  if (!busy_.has_value()) MaybeStopped();
}

void SimWorker::MaybeStopped() {
  if (!stop_.has_value() || busy_.has_value()) return;
  After(world().random().Between(absl::Microseconds(10), absl::Milliseconds(5)), [this] {
    if (!stop_.has_value()) return;
    const Generation generation = *std::exchange(stop_, std::nullopt);
    Step(worker::ComputingStopped{generation, std::exchange(state_void_, false)});
  });
}

void SimWorker::Failed(const Generation& generation, const absl::Status& status, bool state_void) {
  End();
  if (stop_.has_value()) {
    state_void_ = state_void_ || state_void;
    return MaybeStopped();
  }
  Step(worker::CollectiveFailed{generation, {}, state_void, std::string(status.message())});
}

void SimWorker::Exchange(const Generation& generation, const std::string& what, Contribution mine, bool receives,
                         std::function<void(const Gathered&)> then) {
  if (stop_.has_value() || group_aborted_) return Failed(generation, absl::AbortedError("stopped"), false);
  waits_for_peer_ = true;
  fabric().Exchange(Key(), static_cast<int>(rank_), what, std::move(mine),
                    [this, generation, receives, then = std::move(then)](absl::StatusOr<Gathered> gathered) {
                      waits_for_peer_ = false;
                      if (gathered.ok()) return then(*gathered);
                      // Half of a state may already stand in place of the old one.
                      const bool state_void = receives && world().random().Chance(500);
                      if (state_void) has_state_ = false;
                      Failed(generation, gathered.status(), state_void);
                    });
}

}  // namespace lockstep::simulation
