// What a worker decides when its chief says anything in any order, while the worker itself is honest: what it begins
// ends, sooner or later, well or badly. Whatever is said, the core keeps to what session_core.h promises.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/wire.h"
#include "common/status/exit_code.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/script_policy.h"
#include "tests/fuzz/session_script.pb.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {
namespace {

constexpr int kMostEvents = 300;
constexpr uint32_t kMostAdvanceMs = 20000;
constexpr size_t kMostMembers = 8;
const Incarnation kSelf{0, 1};
constexpr Generation kNewest{std::numeric_limits<Term>::max(), std::numeric_limits<uint64_t>::max()};

Digest DigestOf(const Lineage& lineage, uint64_t step) { return absl::StrCat("digest of ", lineage, " at ", step); }

// The policy of the script's chief; what is zero is as it is by default.
std::optional<TrainingPolicy> PolicyOf(const proto::TrainingPolicy& message) {
  auto policy = fuzz::ReadPolicy(message);
  if (!policy.has_value()) return std::nullopt;
  const TrainingPolicy usual;
  if (policy->end_step == 0) policy->end_step = 1000;
  for (const auto field : {&TrainingPolicy::heartbeat_interval, &TrainingPolicy::report_interval,
                           &TrainingPolicy::retry_interval, &TrainingPolicy::chief_timeout,
                           &TrainingPolicy::abort_limit, &TrainingPolicy::late_leave, &TrainingPolicy::grace_period}) {
    if ((*policy).*field == absl::ZeroDuration()) (*policy).*field = usual.*field;
  }
  return policy;
}

// A worker whose shell does what its core asks for, when the script says so.
class Worker {
 public:
  explicit Worker(TrainingPolicy policy)
      : policy_(std::move(policy)), core_({.incarnation = kSelf, .peer_address = "host-0:1"}) {
    Give(Tick());
  }

  bool ended() const { return ended_; }
  void Happens(const fuzz::SessionEvent& event);

 private:
  // What was begun and has not ended, and the generation that it belongs to.
  struct UnderWay {
    Action what;
    Generation generation;
    bool collective = false;  // ends when its generation's collectives are aborted
  };

  void Give(const Event& event) {
    const bool had_state = core_.has_state();
    const Lineage lineage = core_.lineage();
    const Position position = core_.position();
    for (const Action& action : core_.Step(now_, event)) {
      std::visit([&](const auto& a) { Perform(a); }, action);
    }
    const bool same = had_state && core_.has_state() && core_.lineage() == lineage;
    LS_CHECK(!same || core_.position() >= position, "an applied step is never given up within its lineage");
    LS_CHECK(std::count_if(under_way_.begin(), under_way_.end(), [](const UnderWay& u) { return u.collective; }) <= 1,
             "one piece of work is under way at most");
  }
  void Advance(absl::Duration time) {
    now_ += time;
    Give(Tick());
    LS_CHECK(ended_ || core_.NextDeadline() > now_, "a tick does all that is due");
  }

  void Begin(Action what, bool collective = false) {
    under_way_.push_back({std::move(what), core_.generation(), collective});
  }
  void Perform(const Connect&) { Begin(Connect()); }
  void Perform(const Disconnect&) { connected_ = false; }
  void Perform(const Send& send) {
    const auto read = FromWire(ToWire(send.fence, send.message));
    LS_CHECK(read.ok(), "a chief can read what a worker says");
    if (const auto* ack = std::get_if<VerdictAck>(&send.message)) {
      LS_CHECK(!Computes(ack->generation), "a worker says that it has stopped when it has");
    }
    if (const auto* hello = std::get_if<Hello>(&send.message); hello != nullptr && hello->activity == Activity::kIdle) {
      LS_CHECK(!Computes(kNewest), "a worker says that it is idle when it is");
    }
  }
  void Perform(const SetPhase&) {}
  void Perform(const MakeKernelPlan& plan) { Begin(plan); }
  void Perform(const PrepareReplica& prepare) { Begin(prepare); }
  void Perform(const TestConnections& test) { Begin(test); }
  void Perform(const FormCommunicator& form) {
    LS_CHECK(form.rank < form.members.size() && form.members[form.rank].incarnation == kSelf, "its rank is its own");
    ranks_ = form.members.size();
    rank_ = form.rank;
    Begin(form, true);
  }
  void Perform(const DeliverStore&) {}
  void Perform(const SyncState& sync) { Begin(sync, true); }
  void Perform(const RunStep& step) {
    LS_CHECK(core_.has_state() && step.step == core_.position().step + 1, "a step follows the one before");
    Begin(step, true);
  }
  void Perform(const RunSlice& slice) { Begin(slice, true); }
  void Perform(const WriteSample& sample) { Begin(sample); }
  void Perform(const CancelSample&) {}
  void Perform(const AbortCollectives& abort) { aborted_ = std::max(aborted_, abort.generation); }
  void Perform(const StopComputing& stop) { Begin(stop); }
  void Perform(const ComputeDigest& digest) { Begin(digest); }
  void Perform(const TakeUpKept& copy) {
    LS_CHECK(Holds(kept_, copy.copy), "a copy that is taken up is kept");
    Begin(copy);
  }
  void Perform(const DropKept& copy) { LS_CHECK(std::erase(kept_, copy.copy) == 1, "a copy that is dropped is kept"); }
  void Perform(const ReleaseMemory&) {}
  void Perform(const worker::TakeSnapshot& snapshot) { Begin(snapshot); }
  void Perform(const UploadShare& upload) {
    LS_CHECK(Holds(snapshots_, upload.snapshot), "a share is of a snapshot that is held");
    Begin(upload);
  }
  void Perform(const DropSnapshot& drop) {
    LS_CHECK(std::erase(snapshots_, drop.snapshot) == 1, "a snapshot that is dropped is held");
  }
  void Perform(const Announce&) {}
  void Perform(const Exit& exit) {
    ended_ = true;
    if (exit.code == kExitBug) std::cerr << exit.reason << "\n";
    LS_CHECK(exit.code != kExitBug, "nothing that a chief says makes a worker find itself wrong");
  }

  static bool Holds(const std::vector<SnapshotId>& all, const SnapshotId& id) {
    return std::find(all.begin(), all.end(), id) != all.end();
  }
  // For a generation up to `newest`.
  bool Computes(const Generation& newest) const {
    return std::any_of(under_way_.begin(), under_way_.end(),
                       [&](const UnderWay& u) { return u.collective && u.generation <= newest; });
  }

  void Finish(const fuzz::Failure& end, bool well);
  void Says(const proto::ChiefEnvelope& envelope);
  void Complete(ChiefFence& fence, ChiefCommand& command);
  ControlWord Word(const ControlContribution& own) const;

  // How each kind of work ends. `why`: empty where it went well.
  void End(const Connect&, const fuzz::Failure& why) {
    connected_ = why.message().empty();
    Give(connected_ ? Event(ChiefConnected()) : Event(ChiefDisconnected{why.message()}));
  }
  void End(const MakeKernelPlan&, const fuzz::Failure& why) {
    Give(why.message().empty() ? Event(PlanFinished{PlanMade{"plan-1", "plan", "data"}})
                               : Event(PreparationFailed{PrepareFailed{.message = why.message()}}));
  }
  void End(const PrepareReplica& prepare, const fuzz::Failure& why) {
    Give(why.message().empty() ? Event(Prepared{Ready{prepare.plan_hash, "data", absl::Milliseconds(5), 100}, true})
                               : Event(PreparationFailed{PrepareFailed{.message = why.message()}}));
  }
  void End(const TestConnections& test, const fuzz::Failure&) {
    Give(PeersTestedHere{PeersTested{.round = test.round}});
  }
  void End(const FormCommunicator& form, const fuzz::Failure& why) {
    if (!why.message().empty()) return FailCollective(form.generation, why);
    Give(CommunicatorFormed{form.generation});
  }
  void End(const SyncState& sync, const fuzz::Failure& why) {
    if (!why.message().empty()) return FailCollective(sync.generation, why);
    Give(StateSynced{sync.generation, sync.position, DigestOf(sync.lineage, sync.position.step), sync.progress});
  }
  void End(const RunStep& step, const fuzz::Failure& why) {
    if (!why.message().empty()) return FailCollective(step.generation, why);
    Give(StepFinished{step.generation, step.step, StepOutcome::kApplied, Word(step.slot), {step.step, 0.5}, ""});
  }
  void End(const RunSlice& slice, const fuzz::Failure& why) {
    if (!why.message().empty()) return FailCollective(slice.generation, why);
    Give(SliceFinished{slice.generation, slice.step, Word(slice.slot), SliceResult{slice.slice, {}}});
  }
  void End(const WriteSample& sample, const fuzz::Failure&) {
    Give(TextWritten{sample.generation, sample.step, "text"});
  }
  void End(const StopComputing& stop, const fuzz::Failure& why) {
    std::erase_if(under_way_, [&](const UnderWay& u) { return u.collective && u.generation <= stop.generation; });
    Give(ComputingStopped{stop.generation, why.state_void()});
  }
  void End(const ComputeDigest& compute, const fuzz::Failure& why) {
    const Digest digest = DigestOf(core_.lineage(), compute.position.step);
    const bool keeps = !compute.keep_as.empty() && why.message().empty();
    const SnapshotId copy{compute.keep_as, compute.position.step, digest};
    if (keeps && !Holds(kept_, copy)) {
      kept_.push_back(copy);
      copied_.push_back(copy);
    }
    Give(DigestComputed{compute.position, digest, keeps, absl::Milliseconds(1), !compute.keep_as.empty() && !keeps});
  }
  void End(const TakeUpKept& copy, const fuzz::Failure& why) { Give(KeptTakenUp{copy.copy, why.message()}); }
  void End(const worker::TakeSnapshot& snapshot, const fuzz::Failure&) {
    snapshots_.push_back({snapshot.lineage, snapshot.step, DigestOf(snapshot.lineage, snapshot.step)});
    taken_.push_back(snapshots_.back());
    Give(SnapshotDone{snapshots_.back()});
  }
  void End(const UploadShare& upload, const fuzz::Failure& why) {
    Give(why.message().empty() ? Event(ShareUploaded{upload.snapshot, upload.share, upload.shares})
                               : Event(ShareUploadFailed{upload.snapshot, upload.share, upload.shares, why.message()}));
  }
  void FailCollective(const Generation& generation, const fuzz::Failure& why) {
    Give(CollectiveFailed{generation, {}, why.state_void(), why.message()});
  }
  template <typename Other>
  void End(const Other&, const fuzz::Failure&) {}  // is over when it is asked for

  TrainingPolicy policy_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  SessionCore core_;
  bool connected_ = false;
  bool ended_ = false;
  Generation aborted_;
  size_t ranks_ = 1;
  size_t rank_ = 0;
  ControlContribution others_;
  std::vector<UnderWay> under_way_;
  std::vector<SnapshotId> snapshots_, kept_;  // held
  std::vector<SnapshotId> taken_, copied_;    // ever
  Generation named_;                          // the newest that the chief named
};

ControlWord Worker::Word(const ControlContribution& own) const {
  ControlWord word;
  word.slots.assign(ranks_, others_);
  word.slots[rank_] = own;
  return word;
}

void Worker::Finish(const fuzz::Failure& end, bool well) {
  if (under_way_.empty()) return;
  const size_t which = end.which() % under_way_.size();
  const UnderWay work = under_way_[which];
  under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
  fuzz::Failure why;
  if (!well) {
    why = end;
    if (why.message().empty()) why.set_message("it failed");
  }
  // A step's update may have begun before its collectives were aborted; all else of that generation fails.
  const bool cut = work.collective && work.generation <= aborted_ && !std::holds_alternative<RunStep>(work.what);
  if (well && cut) why.set_message("aborted");
  std::visit([&](const auto& what) { End(what, why); }, work.what);
}

// What the chief leaves out is what an honest one would say.
void Worker::Complete(ChiefFence& fence, ChiefCommand& command) {
  if (fence.term == 0) fence.term = 1;
  if (auto* welcome = std::get_if<Welcome>(&command); welcome != nullptr && welcome->protocol == 0) {
    welcome->protocol = kProtocol;
  }
  if (auto* form = std::get_if<Form>(&command)) {
    if (fence.generation.IsNone()) fence.generation = {fence.term, ++named_.counter};
    if (form->lineage.empty()) form->lineage = core_.has_state() ? core_.lineage() : "lineage-1";
    if (form->members.empty()) form->members = {Member{kSelf, "worker-0", "host-0:1"}, Member{{0, 2}, "w", "host-1:1"}};
    if (form->members.size() > kMostMembers) form->members.resize(kMostMembers);
    if (form->position == Position()) form->position = core_.position();
    if (!core_.has_state() && form->receivers.empty()) form->receivers = {0};
  } else if (fence.generation.IsNone()) {
    fence.generation = core_.generation();
  }
  named_.counter = std::max(named_.counter, std::min<uint64_t>(fence.generation.counter, 1u << 20));
  // Of snapshots and copies it names one that there is or was.
  const auto name = [](const std::vector<SnapshotId>& known, SnapshotId& id) {
    if (id.digest.empty() && !known.empty()) id = known[id.step % known.size()];
  };
  if (auto* ask = std::get_if<AskShare>(&command)) name(taken_, ask->snapshot);
  if (auto* end = std::get_if<SnapshotEnded>(&command)) name(taken_, end->snapshot);
  if (auto* back = std::get_if<ReturnTo>(&command); back != nullptr && back->state.digest.empty()) {
    SnapshotId copy{"", back->state.position.step, ""};
    name(copied_, copy);
    back->state = {copy.lineage, {copy.step, 0}, copy.digest};
    if (back->lineage.empty()) back->lineage = absl::StrCat(copy.lineage, "-", copy.step);
  }
}

void Worker::Says(const proto::ChiefEnvelope& envelope) {
  auto read = FromWire(envelope);
  if (!read.ok() || !connected_) return;
  if (auto* welcome = std::get_if<Welcome>(&read->command)) {
    if (!envelope.command().welcome().has_policy()) welcome->policy = policy_;
  }
  Complete(read->fence, read->command);
  Give(CommandReceived{read->fence, std::move(read->command)});
}

void Worker::Happens(const fuzz::SessionEvent& event) {
  using Kind = fuzz::SessionEvent;
  fuzz::Failure which;
  switch (event.kind_case()) {
    case Kind::kSays:
      return Says(event.says());
    case Kind::kConnects: {
      const auto attempt = std::find_if(under_way_.begin(), under_way_.end(),
                                        [](const UnderWay& u) { return std::holds_alternative<Connect>(u.what); });
      if (attempt == under_way_.end()) return;
      which.set_which(static_cast<uint32_t>(attempt - under_way_.begin()));
      return Finish(which, event.connects());
    }
    case Kind::kDisconnects:
    case Kind::kHandedOver:
      if (!std::exchange(connected_, false)) return;
      return Give(ChiefDisconnected{event.disconnects(), false, event.handed_over()});
    case Kind::kBeats:
      return Give(BeatAnswered{1});
    case Kind::kAdvanceMs:
      return Advance(absl::Milliseconds(event.advance_ms() % kMostAdvanceMs));
    case Kind::kDeadline:
      if (core_.NextDeadline() == absl::InfiniteFuture()) return;
      return Advance(core_.NextDeadline() - now_);
    case Kind::kFinishes:
      which.set_which(event.finishes());
      return Finish(which, true);
    case Kind::kFails:
      return Finish(event.fails(), false);
    case Kind::kWord:
      for (int i = 0; i < std::min<int>(event.word().requests_size(), kRequestKinds); ++i) {
        others_.requests[static_cast<size_t>(i)] = event.word().requests(i);
      }
      others_.free_to_save = event.word().free_to_save();
      others_.hears_chief = event.word().hears_chief();
      return;
    case Kind::kTermSignalMs:
      return Give(TermSignal{absl::Milliseconds(event.term_signal_ms())});
    case Kind::kDataLost:
      return Give(DataLost{"a file is not what it was"});
    case Kind::KIND_NOT_SET:
      return;
  }
}

}  // namespace
}  // namespace lockstep::worker

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const BinaryMutator<SessionScript> mutator({"worker-0", "lineage-1", "lineage-2", "lineage-1-10", "plan-1"});
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  lockstep::fuzz::SessionScript script;
  if (!script.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto policy = lockstep::worker::PolicyOf(script.training());
  if (!policy.has_value()) return 0;
  lockstep::worker::Worker worker(*policy);
  for (int i = 0; i < std::min(script.events_size(), lockstep::worker::kMostEvents) && !worker.ended(); ++i) {
    worker.Happens(script.events(i));
  }
  return 0;
}
