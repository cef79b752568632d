#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {

ControlContribution SessionCore::MySlot() const {
  ControlContribution slot;
  slot.requests = requests_.contributed();
  slot.request(RequestKind::kLeave) = grace_.AsksToLeave(now_, link_.welcomed(), policy_.late_leave) ? 1 : 0;
  slot.free_to_save = snapshots_.empty();
  slot.hears_chief = link_.welcomed();
  return slot;
}

void SessionCore::On(const StepFinished& event) {
  if (membership_.none() || event.generation != membership_.generation()) return;
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
  if (membership_.rank() == 0) reports_.Add(event.record);
  if (phase_ == Phase::kRunning) AtBoundaryWith(event.word);
}

void SessionCore::On(const SliceFinished& event) {
  if (membership_.none() || event.generation != membership_.generation()) return;
  if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
  if (work_ != Work::kSlice || event.step != position_.step) return;
  work_ = Work::kNone;
  ++position_.evaluated_slices;
  progress_.sums += event.result.sums;
  published_ = false;
  if (position_.evaluated_slices == policy_.eval_slices) {
    progress_.ledger = Judge(policy_.evaluation, progress_.ledger, position_.step, progress_.sums);
  }
  evaluations_.Add(lineage_, event.step, event.result);
  if (membership_.rank() == 0) Tell(EvalReport{lineage_, event.step, {event.result}});
  const bool last = position_.evaluated_slices == policy_.eval_slices;
  if (last && membership_.rank() == 0 && policy_.samples_text && phase_ == Phase::kRunning) {
    Emit(WriteSample{event.generation, position_.step});
  }
  if (phase_ == Phase::kRunning) AtBoundaryWith(event.word);
}

void SessionCore::AtBoundaryWith(const ControlWord& word) {
  boundary_ = PlanBoundary(policy_, {position_, progress_.ledger, published_}, word);
  requests_.Serve(boundary_.served);
  // A snapshot finds the digest on its way.
  if (boundary_.audit && !boundary_.save.has_value()) return Audit();
  ServeSave();
}

void SessionCore::Audit() {
  work_ = Work::kDigest;
  // A copy that is kept while no chief compares what it holds would take the place of one that was compared.
  const bool keeps = membership_.members().size() > 1 && link_.welcomed() && kept_.IsDue(now_);
  if (keeps) {
    if (const auto oldest = kept_.Begin(now_)) Emit(DropKept{*oldest, "a newer state is kept"});
  }
  Emit(ComputeDigest{position_, "audit", keeps ? lineage_ : Lineage()});
}

void SessionCore::On(const DigestComputed& event) {
  if (event.position != position_) return;
  if (ack_waits_for_digest_.has_value()) {
    const Generation generation = *std::exchange(ack_waits_for_digest_, std::nullopt);
    if (phase_ == Phase::kHolding) return MeetAtBoundary(event.digest);
    return SendAck(generation, event.digest);
  }
  if (work_ != Work::kDigest || (phase_ != Phase::kRunning && phase_ != Phase::kStopping)) return;
  work_ = Work::kNone;
  kept_.Note(event, lineage_, progress_);
  // Also of a generation that ends meanwhile: it may be what says whose state is wrong.
  reports_.Add(StateDigest{event.position, event.digest});
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
  if (boundary_.part && !grace_.begun()) {
    return Break("a member leaves, and without the chief nobody can form a generation without it");
  }
  if (!boundary_.leave && !boundary_.form) return GoOn();
  HoldFor(Hold::kMeeting);
  TellMeeting();
}

void SessionCore::TellMeeting() {
  if (!policy_.digest_in_acks) return MeetAtBoundary({});
  ack_waits_for_digest_ = membership_.generation();
  Emit(ComputeDigest{position_, "to meet at a boundary"});
}

void SessionCore::MeetAtBoundary(Digest digest) {
  if (link_.welcomed()) {
    Tell(AtBoundary{membership_.generation(), lineage_, position_, std::move(digest), grace_.begun(), kept_.States()});
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
    Emit(RunSlice{membership_.generation(), position_.step, position_.evaluated_slices, MySlot()});
    return;
  }
  work_ = Work::kStep;
  Emit(RunStep{membership_.generation(), position_.step + 1, progress_.ledger.rate_cuts, MySlot()});
}

}  // namespace lockstep::worker
