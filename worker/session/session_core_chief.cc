#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol/member_list.h"
#include "common/status/exit_code.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {
namespace {

const char* CommandName(const ChiefCommand& command) {
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

void SessionCore::On(const ChiefConnected&) {
  if (link_.Connected()) Greet();
}

// What a Hello says of our position may still change while computing is being stopped, or a copy taken up.
void SessionCore::Greet() {
  if (phase_ == Phase::kStopping || phase_ == Phase::kReturning) return link_.HelloWaits();
  SayHello();
}

void SessionCore::On(const ChiefDisconnected& event) {
  if (event.bad_token) return ExitWith(kExitBadToken, event.reason);
  if (link_.Is(Link::kDown)) return;
  if (event.handed_over) link_.HandedOver();
  LoseLink(event.reason);
}

void SessionCore::On(const BeatAnswered& event) { link_.BeatAnswered(now_, event.term); }

void SessionCore::GiveUpLink(const std::string& reason) {
  Emit(Disconnect{reason});
  LoseLink(reason);
}

void SessionCore::LoseLink(const std::string& reason) {
  if (link_.Lost(now_, policy_.retry_interval)) Emit(Announce{true, absl::StrCat("lost the chief: ", reason)});
  verdicts_.clear();
  ack_waits_for_digest_.reset();
  // The rendezvous of a communicator runs over the session; a state sync does not.
  if (phase_ == Phase::kForming) return Break("the chief was lost while the communicator was being formed");
  const bool may_go_on = hold_ == Hold::kEarlierSave || hold_ == Hold::kSave || hold_ == Hold::kMeeting;
  if (phase_ == Phase::kHolding && may_go_on) ResumeFromHold("the chief was lost");
}

void SessionCore::SayHello() {
  link_.HelloSent(now_);
  Hello hello;
  hello.job = job_;
  hello.preferred_name = name_.empty() ? config_.preferred_name : name_;
  hello.host = config_.host;
  hello.peer_address = config_.peer_address;
  hello.device = config_.device;
  hello.highest_term = link_.highest_term();
  hello.has_state = has_state_;
  hello.lineage = lineage_;
  hello.position = position_;
  hello.ledger = progress_.ledger;
  if (membership_.none()) {
    failure_.reset();  // a Hello that says idle says as much
  } else {
    hello.activity = hold_ == Hold::kFinished ? Activity::kFinished : Activity::kRunning;
    hello.generation = membership_.generation();
    NameMembers(membership_.members(), config_.incarnation, hello);
  }
  for (const HeldSnapshots::Snapshot& snapshot : snapshots_.all()) {
    if (snapshot.id.has_value()) hello.snapshots.push_back(*snapshot.id);
  }
  hello.leaving = grace_.begun();
  hello.ready = ready_;
  hello.kept = kept_.States();
  hello.differ = differ_;
  // The fence of a Hello names the job and the process; the term is the chief's to say.
  Emit(Send{WorkerFence{job_, 0, config_.incarnation}, std::move(hello), "a new session begins"});
}

void SessionCore::Reject(const ChiefFence& fence, const char* command, std::string reason) {
  Tell(CommandRejected{command, fence, membership_.generation(), std::move(reason)});
}

void SessionCore::On(const CommandReceived& event) {
  const ChiefFence& fence = event.fence;
  const char* name = CommandName(event.command);
  if (!link_.Is(Link::kGreeting) && !link_.welcomed()) return;
  if (fence.term < link_.highest_term()) {
    // A chief that a newer one has replaced. It ends when it reads our Hello; until then it commands nobody here.
    Reject(fence, name, absl::StrCat("this worker follows term ", link_.highest_term()));
    if (link_.Is(Link::kGreeting)) GiveUpLink("the chief's term is over");
    return;
  }
  if (link_.Is(Link::kGreeting)) {
    if (std::holds_alternative<Fenced>(event.command)) return;  // the Hello that it asks for is on its way
    // Nothing answers a Hello that waits: a worker that took the Welcome would say it into a session that stands.
    const bool welcomed = std::holds_alternative<Welcome>(event.command) && !link_.hello_waits();
    const bool answers_hello = welcomed || std::holds_alternative<Refused>(event.command) ||
                               std::holds_alternative<Done>(event.command) ||
                               std::holds_alternative<Shutdown>(event.command);
    if (!answers_hello) return Reject(fence, name, "this session has not been welcomed yet");
  } else if (fence.term != link_.term() && !std::holds_alternative<Fenced>(event.command)) {
    return Reject(fence, name, absl::StrCat("this session follows term ", link_.term()));
  }
  link_.Heard(now_);
  std::visit([&](const auto& command) { Obey(fence, command); }, event.command);
}

void SessionCore::Obey(const ChiefFence&, const Refused& command) {
  ExitWith(command.exit_code, absl::StrCat("refused: ", command.message));
}

void SessionCore::Obey(const ChiefFence& fence, const MakePlan& command) {
  PrepareFor(fence, MakePlan::kTypeName, {.metagraph = command.metagraph});
}

void SessionCore::Obey(const ChiefFence& fence, const lockstep::Prepare& command) {
  PrepareFor(fence, lockstep::Prepare::kTypeName, command);
}

void SessionCore::Obey(const ChiefFence&, const TestPeers& command) {
  Emit(TestConnections{command.round, command.peers});
}

void SessionCore::Obey(const ChiefFence& fence, const Dismiss& command) {
  if (!grace_.begun()) return Reject(fence, Dismiss::kTypeName, "this worker does not leave");
  ExitAsLeaver(command.reason.empty() ? "dismissed by the chief" : command.reason);
}

void SessionCore::Obey(const ChiefFence&, const Shutdown& command) { ExitWith(command.exit_code, command.reason); }

void SessionCore::Obey(const ChiefFence&, const Done& command) { ExitWith(command.exit_code, EndOfJob(command)); }

void SessionCore::Obey(const ChiefFence&, const Fenced& command) {
  Emit(Announce{true, absl::StrCat("the chief asks for a new Hello: ", command.reason)});
  link_.GreetAnew(now_);
  Greet();
}

void SessionCore::Obey(const ChiefFence& fence, const StorePush& command) {
  if (!AboutMyGeneration(fence, StorePush::kTypeName)) return;
  Emit(DeliverStore{membership_.generation(), command.key, command.value});
}

// MakePlan is a Prepare without a plan.
void SessionCore::PrepareFor(const ChiefFence& fence, const char* command, const lockstep::Prepare& wanted) {
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

void SessionCore::Obey(const ChiefFence& fence, const Welcome& welcome) {
  if (welcome.protocol != kProtocol) {
    return ExitWith(kExitBadJob, absl::StrCat("the chief speaks protocol ", welcome.protocol, ", this worker ",
                                              kProtocol, ": install the same version of Lockstep on both"));
  }
  link_.Welcomed(fence.term);
  job_ = welcome.job;
  name_ = welcome.name;
  newest_policy_ = welcome.policy;
  if (membership_.none()) policy_ = newest_policy_;
  reports_.SayPositionAgain();
  phase_told_.reset();
  // The Hello may have said that we run: the generation can have broken, and even come to rest, since.
  if (failure_.has_value()) Tell(*std::exchange(failure_, std::nullopt), "no chief has heard it yet");
  for (const HeldSnapshots::Snapshot& snapshot : snapshots_.all()) {
    if (snapshot.id.has_value()) TellSnapshot(snapshot);
  }
  TellEvaluations();
  if (grace_.begun()) TellLeaveIntent();
  if (Meets()) TellMeeting();  // the chief of then may not have heard it
  // Ranks hear of other settings at different steps: they begin with the next generation.
  if (!SameSettings(policy_, newest_policy_) && phase_ != Phase::kStopping) {
    const std::string reason = "the job's settings have changed";
    Tell(PeerFailed{membership_.generation(), {}, phase_ == Phase::kForming, reason, /*damaged=*/false});
    Break(reason);
  }
}

void SessionCore::TellEvaluations() {
  for (EvalReport& message : evaluations_.Messages()) Tell(std::move(message));
}

bool SessionCore::AboutMyGeneration(const ChiefFence& fence, const char* command) {
  if (!membership_.none() && fence.generation == membership_.generation() && phase_ != Phase::kStopping) return true;
  Reject(fence, command, absl::StrCat("this worker is not in generation ", fence.generation.ToString()));
  return false;
}

void SessionCore::Obey(const ChiefFence& fence, const BoundaryRequest& request) {
  if (!AboutMyGeneration(fence, BoundaryRequest::kTypeName)) return;
  if (request.kind == RequestKind::kLeave) {
    return Reject(fence, BoundaryRequest::kTypeName, "only the leaving rank itself asks to leave");
  }
  if (!requests_.Ask(request.kind, request.number)) return;  // it reached another rank earlier and was served
  const bool waits = request.kind != RequestKind::kSnapshot && request.kind != RequestKind::kSnapshotHold;
  if (policy_.samples_text && waits) Emit(CancelSample{"the members are to meet"});
}

}  // namespace lockstep::worker
