// Copies of the state at audits, kept in memory for a way back that is short (rule 22).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {

// A copy that is kept while no chief compares what it holds would take the place of one that was compared.
bool SessionCore::KeepsThisAudit() const {
  return may_keep_ && members_.size() > 1 && link_ == Link::kWelcomed && keep_policy_.IsDue(now_);
}

void SessionCore::Audit() {
  work_ = Work::kDigest;
  const bool keeps = KeepsThisAudit();
  if (keeps) {
    if (kept_.size() >= kMaxKeptStates) {
      Emit(DropKept{kept_.front().copy, "a newer state is kept"});
      kept_.erase(kept_.begin());
    }
    keep_begin_ = now_;
  }
  Emit(ComputeDigest{position_, "audit", keeps ? lineage_ : Lineage()});
}

void SessionCore::NoteCopy(const DigestComputed& event) {
  if (!event.kept) {
    may_keep_ = may_keep_ && !event.keep_failed;
    return;
  }
  keep_policy_.Took(keep_begin_, event.took);
  const SnapshotId copy{lineage_, event.position.step, event.digest};
  const bool known = std::any_of(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.copy == copy; });
  if (!known) kept_.push_back(Kept{copy, KeptState{lineage_, event.position, event.digest}, progress_});
}

std::vector<KeptState> SessionCore::KeptStates() const {
  std::vector<KeptState> states;
  for (const Kept& kept : kept_) states.push_back(kept.state);
  return states;
}

void SessionCore::DropAllKept(const std::string& reason) {
  for (const Kept& kept : std::exchange(kept_, {})) Emit(DropKept{kept.copy, reason});
}

void SessionCore::OnReturnTo(const ReturnTo& command) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.state.position == command.state.position && kept.state.digest == command.state.digest;
  });
  const bool meets = phase_ == Phase::kHolding && hold_ == Hold::kMeeting;  // at rest for the chief
  if (phase_ != Phase::kIdle && !meets) return Tell(Returned{command.state, false, "this worker is busy"});
  if (found == kept_.end()) return Tell(Returned{command.state, false, "this copy is not held here"});
  if (has_state_ && lineage_ == command.lineage && position_ > command.state.position) {
    return Tell(Returned{command.state, false,
                         absl::StrCat("it would go back from ", position_.ToString(), " to ",
                                      command.state.position.ToString(), " within its lineage")});
  }
  if (meets) {
    Emit(AbortCollectives{generation_, "all go back"});
    Park();
  }
  phase_ = Phase::kReturning;
  returning_ = command;
  stop_limit_ = now_ + kReturnLimit;
  Emit(TakeUpKept{found->copy, absl::StrCat("all go back to ", command.state.position.ToString())});
}

void SessionCore::OnKeptTakenUp(const KeptTakenUp& event) {
  if (phase_ != Phase::kReturning) return;
  phase_ = Phase::kIdle;
  stop_limit_ = absl::InfiniteFuture();
  parked_since_ = idle_since_ = now_;
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.copy == event.copy; });
  const bool done = event.message.empty() && found != kept_.end();
  if (done) {
    has_state_ = true;
    published_ = false;
    lineage_ = returning_.lineage;
    position_ = found->state.position;
    progress_ = found->progress;
    records_.clear();
    digests_.clear();
    std::erase_if(evaluations_, [this](const EvalReport& report) { return report.step > position_.step; });
    for (EvalReport& report : evaluations_) report.lineage = lineage_;
    ForgetKeptAfter(position_.step);
  } else if (found != kept_.end()) {
    Emit(DropKept{found->copy, event.message});
    kept_.erase(found);
  }
  Tell(Returned{returning_.state, done, event.message});
  if (hello_waits_) SayHello();
}

// What was kept up to here is of the new lineage as well: all had it.
void SessionCore::ForgetKeptAfter(uint64_t step) {
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (it->state.position.step > step) {
      Emit(DropKept{it->copy, "the job went back to before it"});
      it = kept_.erase(it);
    } else {
      it->state.lineage = lineage_;
      ++it;
    }
  }
}

}  // namespace lockstep::worker
