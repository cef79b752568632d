#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {
namespace {

constexpr size_t kMaxHeldEvaluations = 16;

}  // namespace

ControlContribution SessionCore::MySlot() const {
  ControlContribution slot;
  slot.requests = requests_;
  slot.request(RequestKind::kLeave) = AsksToLeave() ? 1 : 0;
  slot.free_to_save = snapshots_.empty();
  slot.hears_chief = link_ == Link::kWelcomed;
  return slot;
}

void SessionCore::OnStepFinished(const StepFinished& event) {
  if (generation_.IsNone() || event.generation != generation_) return;
  if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
  if (work_ != Work::kStep || event.step != position_.step + 1) return;
  work_ = Work::kNone;
  if (event.outcome == StepOutcome::kNonFinite) {
    Tell(ErrorReport{kExitBadData, position_.step, event.message});
    Emit(Announce{true, event.message});
    if (phase_ != Phase::kRunning) return;
    // The state before that step stands, here and on every other rank: it is saved as at a stop.
    boundary_ = {};
    boundary_.save = SnapshotCause::kStop;
    return ServeSave();
  }
  position_ = Position{event.step, 0};
  progress_.sums = {};
  published_ = false;
  if (rank_ == 0) records_.push_back(event.record);
  if (phase_ == Phase::kRunning) AtBoundaryWith(event.word);
}

void SessionCore::OnSliceFinished(const SliceFinished& event) {
  if (generation_.IsNone() || event.generation != generation_) return;
  if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
  if (work_ != Work::kSlice || event.step != position_.step) return;
  work_ = Work::kNone;
  ++position_.evaluated_slices;
  progress_.sums += event.result.sums;
  published_ = false;
  if (position_.evaluated_slices == policy_.eval_slices) {
    progress_.ledger = Judge(policy_.evaluation, progress_.ledger, position_.step, progress_.sums);
  }
  const bool under_way =
      !evaluations_.empty() && evaluations_.back().lineage == lineage_ && evaluations_.back().step == event.step;
  if (!under_way) evaluations_.push_back(EvalReport{lineage_, event.step, {}});
  if (evaluations_.size() > kMaxHeldEvaluations) evaluations_.erase(evaluations_.begin());
  evaluations_.back().slices.push_back(event.result);
  if (rank_ == 0) Tell(EvalReport{lineage_, event.step, {event.result}});
  const bool last = position_.evaluated_slices == policy_.eval_slices;
  if (last && rank_ == 0 && policy_.samples_text && phase_ == Phase::kRunning) {
    Emit(WriteSample{generation_, position_.step});
  }
  if (phase_ == Phase::kRunning) AtBoundaryWith(event.word);
}

void SessionCore::AtBoundaryWith(const ControlWord& word) {
  boundary_ = PlanBoundary(policy_, {position_, progress_.ledger, published_}, word);
  for (size_t kind = 0; kind < kRequestKinds; ++kind) {
    served_[kind] = std::max(served_[kind], boundary_.served[kind]);
    if (requests_[kind] <= served_[kind]) requests_[kind] = 0;
  }
  // A snapshot finds the digest on its way.
  if (boundary_.audit && !boundary_.save.has_value()) {
    return Audit();
  }
  ServeSave();
}

void SessionCore::OnDigestComputed(const DigestComputed& event) {
  if (event.position != position_) return;
  if (ack_waits_for_digest_.has_value()) {
    const Generation generation = *std::exchange(ack_waits_for_digest_, std::nullopt);
    if (phase_ == Phase::kHolding) return MeetAtBoundary(event.digest);
    return SendAck(generation, event.digest);
  }
  if (work_ != Work::kDigest || (phase_ != Phase::kRunning && phase_ != Phase::kStopping)) return;
  work_ = Work::kNone;
  NoteCopy(event);
  // Also of a generation that ends meanwhile: it may be what says whose state is wrong.
  digests_.push_back(StateDigest{event.position, event.digest});
  if (phase_ == Phase::kRunning) ServeSave();
}

void SessionCore::ServeSave() {
  if (!boundary_.save.has_value()) return ServeMeeting();
  if (boundary_.wait_for_earlier && !snapshots_.empty()) return HoldFor(Hold::kEarlierSave);
  StartSnapshot(*boundary_.save);
  switch (*boundary_.save) {
    case SnapshotCause::kEnd:
    case SnapshotCause::kStop:
      return HoldFor(Hold::kFinished);
    case SnapshotCause::kHold:
      return HoldFor(Hold::kSave);
    case SnapshotCause::kBest:
      return HoldFor(Hold::kBest);
    case SnapshotCause::kDue:
    case SnapshotCause::kAtRest:
      return ServeMeeting();
  }
}

void SessionCore::HoldFor(Hold hold) {
  phase_ = Phase::kHolding;
  hold_ = hold;
  parked_since_ = now_;
  FlushReport();
}

void SessionCore::ServeMeeting() {
  if (boundary_.part && !leaving_) {
    return Break("a member leaves, and without the chief nobody can form a generation without it");
  }
  if (!boundary_.leave && !boundary_.form) return GoOn();
  HoldFor(Hold::kMeeting);
  TellMeeting();
}

void SessionCore::TellMeeting() {
  if (!policy_.digest_in_acks) return MeetAtBoundary({});
  ack_waits_for_digest_ = generation_;
  Emit(ComputeDigest{position_, "to meet at a boundary"});
}

void SessionCore::MeetAtBoundary(Digest digest) {
  if (link_ == Link::kWelcomed) {
    Tell(AtBoundary{generation_, lineage_, position_, std::move(digest), leaving_, KeptStates()});
  } else if (!boundary_.part) {
    ResumeFromHold("the chief is not there");
  }
}

void SessionCore::ResumeFromHold(const std::string& reason) {
  const Hold hold = std::exchange(hold_, Hold::kNone);
  if (hold == Hold::kMeeting && boundary_.part) {
    hold_ = hold;  // the others have parted; only the end of the grace is left
    return;
  }
  phase_ = Phase::kRunning;
  Emit(Announce{false, absl::StrCat("going on at ", position_.ToString(), ": ", reason)});
  if (hold == Hold::kEarlierSave && snapshots_.empty()) return ServeSave();
  if (hold == Hold::kEarlierSave || hold == Hold::kSave || hold == Hold::kBest) return ServeMeeting();
  GoOn();
}

void SessionCore::GoOn() {
  const bool evaluate = boundary_.evaluate;
  boundary_ = {};
  if (evaluate) {
    work_ = Work::kSlice;
    Emit(RunSlice{generation_, position_.step, position_.evaluated_slices, MySlot()});
    return;
  }
  work_ = Work::kStep;
  Emit(RunStep{generation_, position_.step + 1, MySlot()});
}

}  // namespace lockstep::worker
