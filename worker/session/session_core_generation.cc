#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {

std::string SessionCore::WhyNotForm(const ChiefFence& fence, const Form& form) const {
  const bool meets = phase_ == Phase::kHolding && hold_ == Hold::kMeeting;
  if (phase_ != Phase::kIdle && !meets) return "this worker neither stands still nor waits at a boundary";
  if (fence.generation <= last_generation_) {
    return absl::StrCat("this worker was already part of generation ", last_generation_.ToString());
  }
  const auto self = std::find_if(form.members.begin(), form.members.end(),
                                 [this](const Member& member) { return member.incarnation == config_.incarnation; });
  if (self == form.members.end()) return "this worker is not a member";
  const bool receives = form.restore.has_value() || std::find(form.receivers.begin(), form.receivers.end(),
                                                              self - form.members.begin()) != form.receivers.end();
  if (!receives && (!has_state_ || !MayBecome(form.lineage) || position_ != form.position)) {
    return absl::StrCat("it keeps its state for ", form.position.ToString(), " but ",
                        has_state_ ? absl::StrCat("stands at ", position_.ToString()) : "holds none");
  }
  if (has_state_ && lineage_ == form.lineage && position_ > form.position) {
    return absl::StrCat("it would go back from ", position_.ToString(), " to ", form.position.ToString());
  }
  return "";
}

// The chief judged by what this worker said of its state, which has not changed since.
bool SessionCore::MayBecome(const Lineage& lineage) const {
  if (lineage_ == lineage) return true;
  return policy_.digest_in_acks && JobLineage(lineage_) == JobLineage(lineage) && BegunBy(lineage_) < BegunBy(lineage);
}

void SessionCore::GoOnAs(const Lineage& lineage) {
  for (EvalReport& report : evaluations_) {
    if (report.lineage == lineage_) report.lineage = lineage;
  }
  lineage_ = lineage;
}

void SessionCore::OnForm(const ChiefFence& fence, const Form& form) {
  if (const std::string reason = WhyNotForm(fence, form); !reason.empty()) {
    return Reject(fence, Form::kTypeName, reason);
  }
  if (!generation_.IsNone()) Emit(AbortCollectives{generation_, "a new generation is formed"});
  phase_ = Phase::kForming;
  released_ = false;
  hold_ = Hold::kNone;
  work_ = Work::kNone;
  boundary_ = {};
  failure_.reset();
  generation_ = last_generation_ = fence.generation;
  members_ = form.members;
  rank_ = 0;
  while (members_[rank_].incarnation != config_.incarnation) ++rank_;
  form_ = form;
  requests_ = {};
  served_ = {};
  Emit(FormCommunicator{generation_, members_, rank_, form.reason});
}

void SessionCore::OnCommunicatorFormed(const CommunicatorFormed& event) {
  if (phase_ != Phase::kForming || event.generation != generation_) return;
  if (form_.receivers.empty() && !form_.restore.has_value()) {
    GoOnAs(form_.lineage);
    return StartGeneration({});
  }
  phase_ = Phase::kSyncing;
  const EvaluationProgress progress = form_.restore.has_value() ? EvaluationProgress{form_.ledger, {}} : progress_;
  Emit(SyncState{generation_, form_.lineage, form_.position, form_.restore, form_.source_rank, form_.receivers,
                 progress, form_.reason});
}

void SessionCore::OnStateSynced(const StateSynced& event) {
  if (phase_ != Phase::kSyncing || event.generation != generation_) return;
  const bool keeps = !form_.restore.has_value() &&
                     std::find(form_.receivers.begin(), form_.receivers.end(), rank_) == form_.receivers.end();
  if (keeps) GoOnAs(form_.lineage);
  if (lineage_ != form_.lineage) {
    records_.clear();
    digests_.clear();
  }
  if (!keeps && JobLineage(lineage_) != JobLineage(form_.lineage)) DropAllKept("the job went back");
  has_state_ = true;
  lineage_ = form_.lineage;
  position_ = event.position;
  progress_ = event.progress;
  StartGeneration(event.digest);
}

void SessionCore::StartGeneration(Digest digest) {
  phase_ = Phase::kRunning;
  published_ = form_.restore.has_value();
  Tell(Formed{generation_, position_, std::move(digest)});
  // The rank 0 before may have died with what it had not delivered.
  if (rank_ == 0) TellEvaluations();
  AtBoundaryWith(ControlWord{});
}

void SessionCore::OnCollectiveFailed(const CollectiveFailed& event) {
  if (event.generation != generation_ || generation_.IsNone()) return;
  if (event.state_void) has_state_ = false;
  if (phase_ == Phase::kStopping) return;
  const bool forming = phase_ == Phase::kForming || phase_ == Phase::kSyncing;
  failure_ = PeerFailed{generation_, event.suspect, forming, event.message, event.damaged};
  if (link_ == Link::kWelcomed) Tell(*std::exchange(failure_, std::nullopt));
  Break(event.message);
}

void SessionCore::OnVerdict(const ChiefFence& fence, const Verdict& verdict) {
  if (!generation_.IsNone() && fence.generation < generation_) {
    return Reject(fence, Verdict::kTypeName,
                  absl::StrCat("this worker is in the newer generation ", generation_.ToString()));
  }
  // What the chief formed later than ours supersedes ours as well.
  last_generation_ = std::max(last_generation_, fence.generation);
  if (generation_.IsNone()) return Acknowledge(fence.generation);
  verdicts_.push_back(fence.generation);
  if (phase_ != Phase::kStopping) Break(verdict.reason);
}

void SessionCore::Break(const std::string& reason) {
  phase_ = Phase::kStopping;
  hold_ = Hold::kNone;
  boundary_ = {};
  stop_limit_ = now_ + policy_.abort_limit;
  Emit(Announce{true, absl::StrCat("generation ", generation_.ToString(), " is broken: ", reason)});
  Emit(AbortCollectives{generation_, reason});
  Emit(StopComputing{generation_, reason});
}

void SessionCore::OnComputingStopped(const ComputingStopped& event) {
  if (phase_ != Phase::kStopping || event.generation != generation_) return;
  if (event.state_void) has_state_ = false;
  stop_limit_ = absl::InfiniteFuture();
  Park();
  for (const Generation& generation : std::exchange(verdicts_, {})) Acknowledge(generation);
  if (hello_waits_) SayHello();
}

void SessionCore::Park() {
  FlushReport();
  phase_ = Phase::kIdle;
  work_ = Work::kNone;
  hold_ = Hold::kNone;
  generation_ = {};
  policy_ = newest_policy_;
  members_.clear();
  requests_ = {};
  parked_since_ = idle_since_ = now_;
  if (!has_state_) {
    lineage_.clear();
    position_ = {};
    progress_ = {};
  }
}

void SessionCore::Acknowledge(Generation generation) {
  if (!policy_.digest_in_acks || !has_state_) return SendAck(generation, {});
  ack_waits_for_digest_ = generation;
  Emit(ComputeDigest{position_, "to acknowledge a verdict"});
}

void SessionCore::SendAck(Generation generation, Digest digest) {
  Tell(VerdictAck{generation, has_state_, lineage_, position_, std::move(digest), KeptStates()},
       "all computing has stopped");
}

}  // namespace lockstep::worker
