#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol/member_list.h"
#include "common/status/exit_code.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {
namespace {

const char* NameOf(const ChiefCommand& command) {
  return std::visit([](const auto& c) { return std::decay_t<decltype(c)>::kTypeName; }, command);
}

// Whether a generation may go on under both. `stop_after` is no setting: each chief names the checkpoint that it began
// with, and a generation that stands behind it has passed every stop before it.
bool SameSettings(TrainingPolicy running, const TrainingPolicy& told) {
  running.stop_after = told.stop_after;
  return running == told;
}

// Why it ended, only the chief knows: a job that was stopped is not done.
std::string EndOfJob(const Done& done) {
  switch (done.exit_code) {
    case kExitDone:
      return absl::StrCat("the job ended in order; step ", done.step, " is published");
    case kExitPreempted:
      return absl::StrCat("the job was stopped; step ", done.step, " is published, and it goes on from there");
    default:
      return absl::StrCat("the job failed; step ", done.step, " is published. The chief's last line says why");
  }
}

}  // namespace

void SessionCore::OnConnected() {
  if (link_ == Link::kConnecting) Greet();
}

void SessionCore::Greet() {
  link_ = Link::kGreeting;
  if (phase_ == Phase::kStopping || phase_ == Phase::kReturning) {
    hello_waits_ = true;  // what it would say of our position may still change
    greeting_limit_ = absl::InfiniteFuture();
  } else {
    SayHello();
  }
}

void SessionCore::OnDisconnected(const ChiefDisconnected& event) {
  if (event.bad_token) return ExitWith(kExitBadToken, event.reason);
  if (link_ == Link::kDown) return;
  handed_over_ = handed_over_ || event.handed_over;
  LoseLink(event.reason);
}

void SessionCore::OnBeatAnswered(const BeatAnswered& event) {
  if (event.term == term_) heard_ = std::max(heard_, now_);
}

void SessionCore::GiveUpLink(const std::string& reason) {
  Emit(Disconnect{reason});
  LoseLink(reason);
}

// Between half of the interval and all of it. Incarnations are random and multiples of the golden ratio spread evenly,
// so that a thousand workers that lost their chief at one instant do not come back at one instant.
absl::Duration SessionCore::RetryWait() const {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // 2^64 / 1.618...
  const uint64_t place = config_.incarnation.low + attempts_ * kGoldenRatio;
  return policy_.retry_interval * (0.5 + 0.5 * (static_cast<double>(place >> 11) * 0x1p-53));
}

void SessionCore::LoseLink(const std::string& reason) {
  // A chief that accepts a stream and never says Welcome is no chief: its attempts do not restart chief_timeout.
  if (link_ == Link::kWelcomed) link_down_since_ = now_;
  if (link_ == Link::kWelcomed || link_ == Link::kGreeting) {
    Emit(Announce{true, absl::StrCat("lost the chief: ", reason)});
  }
  link_ = Link::kDown;
  hello_waits_ = false;
  greeting_limit_ = absl::InfiniteFuture();
  next_connect_ = std::max(now_, last_attempt_ + RetryWait());
  verdicts_.clear();
  ack_waits_for_digest_.reset();
  // The rendezvous of a communicator runs over the session; a state sync does not.
  if (phase_ == Phase::kForming) return Break("the chief was lost while the communicator was being formed");
  const bool may_go_on = hold_ == Hold::kEarlierSave || hold_ == Hold::kSave || hold_ == Hold::kMeeting;
  if (phase_ == Phase::kHolding && may_go_on) ResumeFromHold("the chief was lost");
}

void SessionCore::SayHello() {
  hello_waits_ = false;
  greeting_limit_ = now_ + config_.greeting_limit;
  Hello hello;
  hello.job = job_;
  hello.preferred_name = name_.empty() ? config_.preferred_name : name_;
  hello.host = config_.host;
  hello.peer_address = config_.peer_address;
  hello.device = config_.device;
  hello.highest_term = highest_term_;
  hello.has_state = has_state_;
  hello.lineage = lineage_;
  hello.position = position_;
  hello.ledger = progress_.ledger;
  if (generation_.IsNone()) {
    failure_.reset();  // a Hello that says idle says as much
  } else {
    hello.activity = hold_ == Hold::kFinished ? Activity::kFinished : Activity::kRunning;
    hello.generation = generation_;
    NameMembers(members_, config_.incarnation, hello);
  }
  for (const Snapshot& snapshot : snapshots_) {
    if (snapshot.id.has_value()) hello.snapshots.push_back(*snapshot.id);
  }
  hello.leaving = leaving_;
  hello.ready = ready_;
  hello.kept = KeptStates();
  hello.differ = differ_;
  // The fence of a Hello names the job and the process; the term is the chief's to say.
  Emit(Send{WorkerFence{job_, 0, config_.incarnation}, std::move(hello), "a new session begins"});
}

void SessionCore::Reject(const ChiefFence& fence, const char* command, std::string reason) {
  Tell(CommandRejected{command, fence, generation_, std::move(reason)});
}

void SessionCore::OnCommand(const CommandReceived& event) {
  const ChiefFence& fence = event.fence;
  const char* name = NameOf(event.command);
  if (link_ != Link::kGreeting && link_ != Link::kWelcomed) return;
  if (fence.term < highest_term_) {
    // A chief that a newer one has replaced. It ends when it reads our Hello; until then it commands nobody here.
    Reject(fence, name, absl::StrCat("this worker follows term ", highest_term_));
    if (link_ == Link::kGreeting) GiveUpLink("the chief's term is over");
    return;
  }
  if (link_ == Link::kGreeting) {
    if (std::holds_alternative<Fenced>(event.command)) return;  // the Hello that it asks for is on its way
    const bool answers_hello =
        std::holds_alternative<Welcome>(event.command) || std::holds_alternative<Refused>(event.command) ||
        std::holds_alternative<Done>(event.command) || std::holds_alternative<Shutdown>(event.command);
    if (!answers_hello) return Reject(fence, name, "this session has not been welcomed yet");
  } else if (fence.term != term_ && !std::holds_alternative<Fenced>(event.command)) {
    return Reject(fence, name, absl::StrCat("this session follows term ", term_));
  }
  heard_ = now_;
  Handle(fence, event.command);
}

void SessionCore::Handle(const ChiefFence& fence, const ChiefCommand& command) {
  std::visit(
      [&](const auto& c) {
        using T = std::decay_t<decltype(c)>;
        if constexpr (std::is_same_v<T, Welcome>) OnWelcome(fence, c);
        if constexpr (std::is_same_v<T, Refused>) ExitWith(c.exit_code, absl::StrCat("refused: ", c.message));
        if constexpr (std::is_same_v<T, MakePlan>) OnPrepare(fence, T::kTypeName, {.metagraph = c.metagraph});
        if constexpr (std::is_same_v<T, Prepare>) OnPrepare(fence, T::kTypeName, c);
        if constexpr (std::is_same_v<T, TestPeers>) Emit(TestConnections{c.round, c.peers});
        if constexpr (std::is_same_v<T, Verdict>) OnVerdict(fence, c);
        if constexpr (std::is_same_v<T, Form>) OnForm(fence, c);
        if constexpr (std::is_same_v<T, BoundaryRequest>) OnBoundaryRequest(fence, c);
        if constexpr (std::is_same_v<T, lockstep::TakeSnapshot>) OnTakeSnapshot(fence, c);
        if constexpr (std::is_same_v<T, AskShare>) OnAskShare(c);
        if constexpr (std::is_same_v<T, ReturnTo>) OnReturnTo(c);
        if constexpr (std::is_same_v<T, StatesDiffer>) differ_ = c;
        if constexpr (std::is_same_v<T, SnapshotEnded>) OnSnapshotEnded(c);
        if constexpr (std::is_same_v<T, Dismiss>) {
          if (!leaving_) return Reject(fence, T::kTypeName, "this worker does not leave");
          ExitWith(kExitPreempted, c.reason.empty() ? "dismissed by the chief" : c.reason);
        }
        if constexpr (std::is_same_v<T, Shutdown>) ExitWith(c.exit_code, c.reason);
        if constexpr (std::is_same_v<T, Done>) ExitWith(c.exit_code, EndOfJob(c));
        if constexpr (std::is_same_v<T, Fenced>) {
          Emit(Announce{true, absl::StrCat("the chief asks for a new Hello: ", c.reason)});
          link_down_since_ = now_;
          Greet();
        }
        if constexpr (std::is_same_v<T, StorePush>) {
          if (!AboutMyGeneration(fence, T::kTypeName)) return;
          Emit(DeliverStore{generation_, c.key, c.value});
        }
      },
      command);
}

// MakePlan is a Prepare without a plan.
void SessionCore::OnPrepare(const ChiefFence& fence, const char* command, const Prepare& wanted) {
  const bool under_way = phase_ == Phase::kPreparing && preparing_ == wanted;
  if (under_way) return;  // asked for again by a chief that came back: the answer will come
  if (phase_ != Phase::kIdle) return Reject(fence, command, "busy");
  phase_ = Phase::kPreparing;
  preparing_ = wanted;
  released_ = false;
  DropAllKept("another replica is made");
  if (wanted.plan_hash.empty()) {
    Emit(MakeKernelPlan{wanted.metagraph, "the chief chose this worker to make the kernel plan"});
  } else {
    Emit(PrepareReplica{wanted.metagraph, wanted.plan_hash, wanted.data_digest, wanted.settings, "joining"});
  }
}

void SessionCore::OnWelcome(const ChiefFence& fence, const Welcome& welcome) {
  if (welcome.protocol != kProtocol) {
    return ExitWith(kExitBadJob, absl::StrCat("the chief speaks protocol ", welcome.protocol, ", this worker ",
                                              kProtocol, ": install the same version of Lockstep on both"));
  }
  link_ = Link::kWelcomed;
  handed_over_ = false;
  greeting_limit_ = absl::InfiniteFuture();
  term_ = highest_term_ = fence.term;
  job_ = welcome.job;
  name_ = welcome.name;
  newest_policy_ = welcome.policy;
  if (generation_.IsNone()) policy_ = newest_policy_;
  reported_ = {};  // say once where we are, whatever the last session carried
  phase_told_.reset();
  // The Hello may have said that we run: the generation can have broken, and even come to rest, since.
  if (failure_.has_value()) Tell(*std::exchange(failure_, std::nullopt), "no chief has heard it yet");
  for (const Snapshot& snapshot : snapshots_) {
    if (snapshot.id.has_value()) TellSnapshot(snapshot);
  }
  TellEvaluations();
  if (leaving_) TellLeaveIntent();
  if (phase_ == Phase::kHolding && hold_ == Hold::kMeeting) TellMeeting();  // the chief of then may not have heard it
  // Ranks hear of other settings at different steps: they begin with the next generation.
  if (!SameSettings(policy_, newest_policy_) && phase_ != Phase::kStopping) {
    const std::string reason = "the job's settings have changed";
    Tell(PeerFailed{generation_, {}, phase_ == Phase::kForming, reason, /*damaged=*/false});
    Break(reason);
  }
}

void SessionCore::TellEvaluations() {
  for (const EvalReport& evaluation : evaluations_) {
    for (auto slice = evaluation.slices.begin(); slice != evaluation.slices.end();) {
      const auto end = slice + std::min<std::ptrdiff_t>(kMaxRepeated, evaluation.slices.end() - slice);
      Tell(EvalReport{evaluation.lineage, evaluation.step, {slice, end}});
      slice = end;
    }
  }
}

bool SessionCore::AboutMyGeneration(const ChiefFence& fence, const char* command) {
  if (!generation_.IsNone() && fence.generation == generation_ && phase_ != Phase::kStopping) return true;
  Reject(fence, command, absl::StrCat("this worker is not in generation ", fence.generation.ToString()));
  return false;
}

void SessionCore::OnBoundaryRequest(const ChiefFence& fence, const BoundaryRequest& request) {
  if (!AboutMyGeneration(fence, BoundaryRequest::kTypeName)) return;
  if (request.kind == RequestKind::kLeave) {
    return Reject(fence, BoundaryRequest::kTypeName, "only the leaving rank itself asks to leave");
  }
  const size_t kind = static_cast<size_t>(request.kind);
  if (request.number <= served_[kind]) return;  // it reached another rank earlier and was served
  requests_[kind] = std::max(requests_[kind], request.number);
  const bool waits = request.kind != RequestKind::kSnapshot && request.kind != RequestKind::kSnapshotHold;
  if (policy_.samples_text && waits) Emit(CancelSample{"the members are to meet"});
}

}  // namespace lockstep::worker
