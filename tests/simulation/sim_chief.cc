#include "tests/simulation/sim_chief.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/storage/may_pass.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/sim_worker.h"

namespace lockstep::simulation {

void SimChief::Trace(const std::string& what) const {
  world().Trace(absl::StrCat("chief#", process_, term_ == 0 ? "" : absl::StrCat(" t", term_)), what);
}

void SimChief::Start() {
  store_->TakeOver([this](const absl::StatusOr<TakenOver>& found) {
    if (found.ok()) return Listen(*found);
    if (absl::IsAborted(found.status())) return cluster_->ChiefExited(this, 76);
    if (!MayPass(found.status())) {
      return cluster_->oracle->Violation(absl::StrCat("a chief cannot take over: ", found.status().ToString()));
    }
    cluster_->Cover("chief waits for the disk");
    After(absl::Seconds(1), [this] { Start(); });
  });
}

void SimChief::Listen(const TakenOver& found) {
  term_ = found.recovered.term;
  lineage_ = found.lineage;
  repair_ = found.recovered.repair;
  newest_told_ = static_cast<int64_t>(found.recovered.checkpoint.step);
  chief::JobPolicy policy = cluster_->settings.policy;
  policy.lineage = lineage_;
  core_ = std::make_unique<chief::Coordinator>(chief::CoordinatorConfig{policy, found.recovered});
  if (world().tracing()) Trace(absl::StrCat("listens, newest checkpoint ", newest_told_));
  listens_since_ = world().now();
  cluster_->ChiefListens(this);
  Step(chief::Tick{});
  WatchTerm();
}

// A chief that writes nothing would never meet the fence: it looks for it now and then.
void SimChief::WatchTerm() {
  After(absl::Seconds(2), [this] {
    store_->LookForNewer(
        [this](const absl::Status& looked) { absl::IsAborted(looked) ? Failed({}, looked) : WatchTerm(); });
  });
}

void SimChief::ScheduleTick() {
  const absl::Time next = std::min(core_->NextDeadline(), world().now() + absl::Milliseconds(500));
  const absl::Time when = std::max(next, world().now() + absl::Microseconds(100));
  if (when >= tick_at_) return;
  tick_at_ = when;
  world().At(process_, when, [this, when] {
    if (tick_at_ != when) return;
    tick_at_ = absl::InfiniteFuture();
    Step(chief::Tick{});
  });
}

void SimChief::Step(const chief::Event& event) {
  if (core_ == nullptr || hung_ || ending_) return;
  if (std::holds_alternative<chief::Tick>(event)) {
    burst_left_ = 0;
  } else if (burst_left_ == 0 && ++taken_ % kBurstEvery == 0) {
    burst_left_ = kBurst;
    Take(chief::BurstBegins{});
  }
  Take(event);
  if (!world().alive(process_) || burst_left_ == 0 || --burst_left_ != 0) return;
  Take(chief::BurstEnds{});
}

void SimChief::Take(const chief::Event& event) {
  cluster_->coverage.Count(phase_, event);
  if (std::holds_alternative<chief::TermLost>(event)) cluster_->Cover("chief fenced by the storage");
  if (world().tracing() && !std::holds_alternative<chief::Tick>(event) &&
      !std::holds_alternative<chief::HeartbeatReceived>(event)) {
    Trace(absl::StrCat("<- ", Describe(event)));
  }
  if (cluster_->record_history && !std::holds_alternative<chief::Tick>(event)) {
    cluster_->TakesIn(process_, Describe(event));
  }
  const std::vector<chief::Action> actions = core_->Step(world().now(), event);
  if (!std::holds_alternative<chief::HeartbeatReceived>(event)) phase_ = core_->phase();
  for (const chief::Action& action : actions) {
    if (world().tracing()) Trace(absl::StrCat("   -> ", Describe(action)));
    std::visit([this](const auto& a) { Perform(a); }, action);
    if (!world().alive(process_) || ending_) return;
  }
  ScheduleTick();
}

void SimChief::Opened(ConnectionId connection, const Incarnation& worker) {
  const chief::SessionId session = next_session_++;
  sessions_[session] = Session{connection, worker};
  by_connection_[connection] = session;
}

void SimChief::Received(ConnectionId connection, const WorkerFence& fence, const WorkerMessage& message) {
  const auto found = by_connection_.find(connection);
  if (found == by_connection_.end()) return;
  if (std::holds_alternative<ErrorReport>(message)) ++errors_;
  Step(chief::FromWorker{found->second, fence, message});
}

void SimChief::Reset(ConnectionId connection) {
  const auto found = by_connection_.find(connection);
  if (found == by_connection_.end()) return;
  const chief::SessionId session = found->second;
  by_connection_.erase(found);
  sessions_.erase(session);
  Step(chief::SessionClosed{session, "the stream ended"});
}

void SimChief::HeartbeatCame(const WorkerFence& fence, const Heartbeat& heartbeat) {
  Step(chief::HeartbeatReceived{fence, heartbeat});
}

void SimChief::ProcessEnded(const std::string& name, ProcessEnd end) {
  if (end.signal != 0 && end.signal != 9) ++errors_;
  Step(chief::ProcessExited{name, end.signal, end.exit_code});
}

void SimChief::AskStop(bool whole) {
  stop_asked_ = true;
  Step(chief::StopRequested{"a signal", 75, /*hands_over=*/!whole});
}

std::string SimChief::WhyNotExit(int exit_code) const {
  const chief::JobPolicy& policy = cluster_->settings.policy;
  switch (exit_code) {
    case 0:
    case 76:
      return "";  // judged by the state of the disk, and by who else is alive
    case 70: {
      const bool spent = errors_ >= 3 || errors_ > static_cast<int>(policy.max_failures);
      if (spent || repair_ends_) return "";
      return absl::StrCat("it heard of ", errors_, " errors of workers");
    }
    case 74:
      return damaged_ >= 3 ? "" : "every save that came was what was announced";
    case 75:
      if (stop_asked_ || world().now() - listens_since_ >= policy.wait_for_min) return "";
      return "nobody asked it to stop, and it did not wait for workers for long";
    default:
      return "nothing ends a chief so";
  }
}

void SimChief::Perform(const chief::SendToAll& action) {
  for (const chief::SessionId session : action.sessions) {
    Perform(chief::Send{session, action.fence, action.command, action.reason});
  }
}

void SimChief::Perform(const chief::Send& action) {
  const auto found = sessions_.find(action.session);
  if (found == sessions_.end()) return;
  if (const Form* form = std::get_if<Form>(&action.command)) {
    if (static_cast<int64_t>(form->position.step) < newest_told_) {
      cluster_->oracle->Violation(absl::StrCat("chief of term ", term_, " forms at step ", form->position.step,
                                               " below its own checkpoint ", newest_told_));
    }
  }
  if (const auto* refused = std::get_if<lockstep::Refused>(&action.command))
    JudgeRefusal(*refused, found->second.worker);
  std::visit([this](const auto& c) { cluster_->Cover(std::decay_t<decltype(c)>::kTypeName); }, action.command);
  SimWorker* worker = cluster_->WorkerOf(found->second.worker);
  const ConnectionId connection = found->second.connection;
  cluster_->network->Send(connection, process_, [worker, connection, fence = action.fence, command = action.command] {
    worker->Receive(connection, fence, command);
  });
}

// Who is turned away for no fault of its process: a drain stands, or its host failed often enough.
void SimChief::JudgeRefusal(const lockstep::Refused& refused, const Incarnation& incarnation) {
  const SimWorker* worker = cluster_->WorkerOf(incarnation);
  if (refused.exit_code == 75 && core_->View().drained.empty()) {
    cluster_->oracle->Violation(absl::StrCat(worker->name(), " is turned away, but nothing is drained"));
  }
  if (refused.exit_code == 75) cluster_->Cover("a drained worker is turned away");
}

void SimChief::Perform(const chief::CloseSession& action) {
  const auto found = sessions_.find(action.session);
  if (found == sessions_.end()) return;
  const ConnectionId connection = found->second.connection;
  cluster_->network->Close(connection, process_);
  After(absl::Microseconds(50), [this, connection] { Reset(connection); });
}

void SimChief::Perform(const chief::StepsAgreed& action) {
  if (static_cast<int64_t>(action.step) > cluster_->oracle->highest_applied()) {
    cluster_->oracle->Violation(absl::StrCat("step ", action.step, " is called agreed, but nobody applied it"));
  }
}

void SimChief::Perform(const chief::EvaluationDone& action) {
  for (size_t i = 0; i < action.slices.size(); ++i) {
    if (action.slices[i].slice == i) continue;
    return cluster_->oracle->Violation(absl::StrCat("the evaluation of step ", action.step, " has holes"));
  }
}

void SimChief::Perform(const chief::WorkerChanged&) {}
void SimChief::Perform(const chief::WorkerCounters&) {}
void SimChief::Perform(const chief::Announce& action) {
  if (absl::StrContains(action.text, "goes on under term")) cluster_->Cover("generation adopted");
}
// Each session ends with the word that another chief follows.
void SimChief::LeaveWorkers() {
  for (const auto& [session, open] : sessions_) {
    SimWorker* worker = cluster_->WorkerOf(open.worker);
    cluster_->network->Send(open.connection, process_,
                            [worker, connection = open.connection] { worker->HandedOver(connection); });
  }
}

void SimChief::Perform(const chief::Exit& action) {
  if (action.handed_over) cluster_->Cover("chief handed over");
  store_->End(action.code, [this, handed_over = action.handed_over](int code) {
    if (handed_over) LeaveWorkers();
    cluster_->ChiefExited(this, code);
  });
  ending_ = true;
}

}  // namespace lockstep::simulation
