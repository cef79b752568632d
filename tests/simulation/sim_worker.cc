#include "tests/simulation/sim_worker.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/sim_chief.h"

namespace lockstep::simulation {
namespace {

const std::string kDataDigest(64, 'd');

worker::SessionConfig Config(const Cluster& cluster, int slot, const Incarnation& incarnation) {
  worker::SessionConfig config;
  config.incarnation = incarnation;
  config.preferred_name = cluster.NameOf(slot);
  config.host = cluster.HostNameOf(slot);
  config.peer_address = absl::StrCat(config.host, ":", incarnation.low);
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
      core_(Config(*cluster, slot, incarnation)),
      alone_since_(cluster->world->now()) {}

void SimWorker::Trace(const std::string& what) const {
  world().Trace(absl::StrCat(name_, "#", incarnation_.low), what);
}

void SimWorker::Start() {
  Step(worker::Tick{});
  After(cluster_->settings.policy.training.heartbeat_interval, [this] { Heartbeat(); });
}

void SimWorker::Terminate(absl::Duration grace) {
  terminated_ = true;
  Step(worker::TermSignal{grace});
}

void SimWorker::BreakDown() {
  broke_down_ = true;
  Step(worker::InternalError{70, "something broke"});
}

void SimWorker::Compute(absl::Duration time, std::function<void()> action) {
  After(time, [this, action = std::move(action)]() mutable { WaitForHang(std::move(action)); });
}

void SimWorker::WaitForHang(std::function<void()> action) {
  if (world().now() >= hangs_until_) return action();
  After(absl::Milliseconds(50), [this, action = std::move(action)]() mutable { WaitForHang(std::move(action)); });
}

void SimWorker::Step(const worker::Event& event) {
  cluster_->coverage.Count(core_.phase(), event);
  if (world().tracing() && !std::holds_alternative<worker::Tick>(event)) {
    Trace(absl::StrCat("<- ", Describe(event)));
  }
  if (cluster_->record_history && !std::holds_alternative<worker::Tick>(event)) {
    cluster_->TakesIn(process_, Describe(event));
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
  const bool refused = cluster_->cut_off.count(world().host(process_)) > 0;
  if (chief == nullptr || !world().alive(chief->process()) || refused) {
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
  if (std::exchange(welcome_, false)) alone_since_ = world().now();
  const bool handed_over = connection_.has_value() && handed_over_by_ == connection_;
  connection_.reset();
  connected_ = false;
  Step(worker::ChiefDisconnected{reason, false, handed_over});
}

void SimWorker::Perform(const worker::Disconnect&) {
  if (connection_.has_value()) cluster_->network->Close(*connection_, process_);
  if (std::exchange(welcome_, false)) alone_since_ = world().now();
  connection_.reset();
  connected_ = false;
}

void SimWorker::Perform(const worker::Send& action) {
  if (!connection_.has_value()) return;
  std::visit([this](const auto& m) { cluster_->Cover(std::decay_t<decltype(m)>::kTypeName); }, action.message);
  if (const auto* formed = std::get_if<Formed>(&action.message)) {
    cluster_->oracle->Started(name_, formed->generation, formed->position);
    cluster_->Formed(*this, members_);
  }
  const ConnectionId id = *connection_;
  cluster_->network->Send(id, process_, [chief = chief_, id, fence = action.fence, message = action.message] {
    chief->Received(id, fence, message);
  });
}

void SimWorker::Receive(ConnectionId connection, ChiefFence fence, ChiefCommand command) {
  if (connection_ != connection || !connected_) return;
  if (std::holds_alternative<Welcome>(command)) welcome_ = true;
  // The session begins anew, and is none until the next Welcome.
  if (std::holds_alternative<Fenced>(command) && std::exchange(welcome_, false)) alone_since_ = world().now();
  if (const auto* done = std::get_if<Done>(&command)) told_to_end_ = done->exit_code;
  if (const auto* shutdown = std::get_if<Shutdown>(&command)) told_to_end_ = shutdown->exit_code;
  if (const auto* refused = std::get_if<Refused>(&command)) refused_with_ = refused->exit_code;
  Step(worker::CommandReceived{fence, std::move(command)});
}

std::string SimWorker::WhyNotExit(int exit_code) const {
  const TrainingPolicy& policy = cluster_->settings.policy.training;
  if (told_to_end_ == exit_code) return "";
  switch (exit_code) {
    case 65:
    case 78:
      if (refused_to_prepare_ || (exit_code == 78 && refused_with_ == 78 && cluster_->MayBeLeftOut(slot_))) return "";
      return "it was refused although it can do its part";
    case 69:
      if (!welcome_ && world().now() - alone_since_ >= policy.chief_timeout) return "";
      return absl::StrCat("it was without a chief for ", absl::FormatDuration(world().now() - alone_since_));
    case 70:
      return broke_down_ ? "" : "nothing of it broke";
    case 75:
      if (refused_with_ == 75 && cluster_->WasDrained(slot_)) return "";
      if (terminated_ || (stop_.has_value() && world().now() - stop_since_ >= policy.abort_limit)) return "";
      return "nobody asked it to leave";
    default:
      return "nobody told it to";
  }
}

void SimWorker::Perform(const worker::SetPhase& action) { phase_ = action; }

void SimWorker::Heartbeat() {
  After(cluster_->settings.policy.training.heartbeat_interval, [this] { Heartbeat(); });
  KeepAlive();
  if (!connected_ || !phase_.has_value()) return;
  lockstep::Heartbeat beat;
  beat.phase = phase_->phase;
  const bool connects = !busy_.has_value() && beat.phase == lockstep::Heartbeat::Phase::kForming;
  if (connects || (busy_.has_value() && waits_for_peer_)) beat.phase = lockstep::Heartbeat::Phase::kWaitingForPeer;
  beat.progress = progress_;
  beat.position = phase_->position;
  SimChief* chief = chief_;
  Network* network = cluster_->network.get();
  const auto answered = [this, chief] {
    if (chief_ == chief) Step(worker::BeatAnswered{chief->term()});
  };
  network->Carry(world().host(process_), chief->process(), network->Delay(), Channel::kBeats,
                 [this, chief, network, beat, answered, fence = phase_->fence] {
                   chief->HeartbeatCame(fence, beat);
                   if (chief->hung()) return;
                   network->Carry(world().host(chief->process()), process_, network->Delay(), Channel::kBeats,
                                  answered);
                 });
}

// Pings on the session's own connection.
void SimWorker::KeepAlive() {
  const bool silent =
      connection_.has_value() &&
      cluster_->network->apart(world().host(process_), world().host(chief_->process()), Only(Channel::kSession));
  if (!silent) {
    silent_since_ = absl::InfiniteFuture();
    return;
  }
  silent_since_ = std::min(silent_since_, world().now());
  if (world().now() - silent_since_ >= cluster_->settings.keepalive) cluster_->network->TimeOut(*connection_, process_);
}

void SimWorker::Perform(const worker::Announce&) {}

void SimWorker::Perform(const worker::Exit& action) {
  if (action.code == 75) cluster_->Cover("worker exits with 75");
  if (action.code == 69) cluster_->Cover("worker exits with 69");
  cluster_->WorkerExited(this, action.code);
}

// ---- Preparing ------------------------------------------------------------------------------------------------------

void SimWorker::Perform(const worker::MakeKernelPlan&) {
  Compute(world().random().Between(absl::Milliseconds(20), absl::Milliseconds(400)), [this] {
    if (CannotPrepare()) return;
    const std::string plan = absl::StrCat("the plan of ", incarnation_.low);
    Step(worker::PlanFinished{PlanMade{Sha256Hex(plan), plan, kDataDigest}});
  });
}

void SimWorker::Perform(const worker::PrepareReplica& action) {
  Compute(world().random().Between(absl::Milliseconds(10), absl::Milliseconds(800)), [this, action] {
    if (CannotPrepare()) return;
    Step(worker::Prepared{
        Ready{action.plan_hash, kDataDigest, absl::Milliseconds(10), sizeof(ReplicaState), action.settings},
        cluster_->settings.keeps_copies});
  });
}

bool SimWorker::CannotPrepare() {
  if (!prepare_problem_.has_value()) return false;
  refused_to_prepare_ = true;
  Step(worker::PreparationFailed{{*prepare_problem_, "it cannot run here"}});
  return true;
}

void SimWorker::Perform(const worker::TestConnections& action) {
  PeersTested result;
  result.round = action.round;
  for (const Member& peer : action.peers) {
    const SimWorker* other = cluster_->WorkerOf(peer.incarnation);
    const HostId here = world().host(process_);
    const bool reached = other != nullptr && world().alive(other->process()) &&
                         !cluster_->network->apart(here, world().host(other->process()), Only(Channel::kPeers)) &&
                         !(cluster_->settings.fabric_limits.has_value() && world().paused(other->process()));
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
  members_ = action.members;
  store_.clear();
  group_entered_ = false;
  group_aborted_ = false;
  if (world().now() < no_peers_until_) {
    group_aborted_ = true;
    After(absl::Milliseconds(1), [this, generation = action.generation] {
      Step(worker::CollectiveFailed{generation, incarnation_, false, "cannot listen for peers"});
    });
    return;
  }
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
                       Step(worker::CollectiveFailed{generation, Suspect(), false, std::string(s.message())});
                     }
                   });
}

Incarnation SimWorker::Suspect() const {
  const int rank = fabric().SuspectOf(Key(), static_cast<int>(rank_));
  return rank < 0 ? Incarnation() : members_[static_cast<size_t>(rank)].incarnation;
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
  stop_since_ = world().now();
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
  Step(worker::CollectiveFailed{generation, Suspect(), state_void, std::string(status.message())});
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
