#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {
namespace {

// Of the member `rank`: its state comes from the source or from the checkpoint.
bool ReceivesState(const Form& form, uint32_t rank) {
  return form.restore.has_value() ||
         std::find(form.receivers.begin(), form.receivers.end(), rank) != form.receivers.end();
}

}  // namespace

std::string SessionCore::WhyNotForm(const ChiefFence& fence, const Form& form) const {
  if (phase_ != Phase::kIdle && !Meets()) return "this worker neither stands still nor waits at a boundary";
  if (fence.generation <= membership_.newest()) {
    return absl::StrCat("this worker was already part of generation ", membership_.newest().ToString());
  }
  const uint32_t rank = membership_.RankIn(form.members);
  if (rank == form.members.size()) return "this worker is not a member";
  const bool receives = ReceivesState(form, rank);
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
  evaluations_.Rename(lineage_, lineage);
  lineage_ = lineage;
}

void SessionCore::Obey(const ChiefFence& fence, const Form& form) {
  if (const std::string reason = WhyNotForm(fence, form); !reason.empty()) {
    return Reject(fence, Form::kTypeName, reason);
  }
  if (!membership_.none()) Emit(AbortCollectives{membership_.generation(), "a new generation is formed"});
  phase_ = Phase::kForming;
  released_ = false;
  hold_ = Hold::kNone;
  work_ = Work::kNone;
  boundary_ = {};
  failure_.reset();
  membership_.Enter(fence.generation, form);
  requests_.Clear();
  Emit(FormCommunicator{fence.generation, form.members, membership_.rank(), form.reason});
}

void SessionCore::On(const CommunicatorFormed& event) {
  if (phase_ != Phase::kForming || event.generation != membership_.generation()) return;
  const Form& form = membership_.form();
  if (form.receivers.empty() && !form.restore.has_value()) {
    GoOnAs(form.lineage);
    return StartGeneration({});
  }
  phase_ = Phase::kSyncing;
  const EvaluationProgress progress = form.restore.has_value() ? EvaluationProgress{form.ledger, {}} : progress_;
  Emit(SyncState{event.generation, form.lineage, form.position, form.restore, form.source_rank, form.receivers,
                 progress, form.reason});
}

void SessionCore::On(const StateSynced& event) {
  if (phase_ != Phase::kSyncing || event.generation != membership_.generation()) return;
  const Form& form = membership_.form();
  const bool keeps = !ReceivesState(form, membership_.rank());
  if (keeps) GoOnAs(form.lineage);
  if (lineage_ != form.lineage) reports_.Clear();
  if (!keeps && JobLineage(lineage_) != JobLineage(form.lineage)) DropAllKept("the job went back");
  has_state_ = true;
  lineage_ = form.lineage;
  position_ = event.position;
  progress_ = event.progress;
  StartGeneration(event.digest);
}

void SessionCore::StartGeneration(Digest digest) {
  phase_ = Phase::kRunning;
  published_ = membership_.form().restore.has_value();
  Tell(Formed{membership_.generation(), position_, std::move(digest)});
  // The rank 0 before may have died with what it had not delivered.
  if (membership_.rank() == 0) TellEvaluations();
  AtBoundaryWith(ControlWord{});
}

void SessionCore::On(const CollectiveFailed& event) {
  if (membership_.none() || event.generation != membership_.generation()) return;
  if (event.state_void) has_state_ = false;
  if (phase_ == Phase::kStopping) return;
  const bool forming = phase_ == Phase::kForming || phase_ == Phase::kSyncing;
  failure_ = PeerFailed{event.generation, event.suspect, forming, event.message, event.damaged};
  if (link_.welcomed()) Tell(*std::exchange(failure_, std::nullopt));
  Break(event.message);
}

void SessionCore::Obey(const ChiefFence& fence, const Verdict& verdict) {
  if (!membership_.none() && fence.generation < membership_.generation()) {
    return Reject(fence, Verdict::kTypeName,
                  absl::StrCat("this worker is in the newer generation ", membership_.generation().ToString()));
  }
  membership_.Supersede(fence.generation);
  if (membership_.none()) return Acknowledge(fence.generation);
  verdicts_.push_back(fence.generation);
  if (phase_ != Phase::kStopping) Break(verdict.reason);
}

void SessionCore::Break(const std::string& reason) {
  phase_ = Phase::kStopping;
  hold_ = Hold::kNone;
  boundary_ = {};
  stop_limit_ = now_ + policy_.abort_limit;
  const Generation& generation = membership_.generation();
  Emit(Announce{true, absl::StrCat("generation ", generation.ToString(), " is broken: ", reason)});
  Emit(AbortCollectives{generation, reason});
  Emit(StopComputing{generation, reason});
}

void SessionCore::On(const ComputingStopped& event) {
  if (phase_ != Phase::kStopping || event.generation != membership_.generation()) return;
  if (event.state_void) has_state_ = false;
  stop_limit_ = absl::InfiniteFuture();
  Park();
  for (const Generation& generation : std::exchange(verdicts_, {})) Acknowledge(generation);
  if (link_.hello_waits()) SayHello();
}

void SessionCore::Park() {
  FlushReport();
  phase_ = Phase::kIdle;
  work_ = Work::kNone;
  hold_ = Hold::kNone;
  membership_.End();
  requests_.Clear();
  policy_ = newest_policy_;
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
  Tell(VerdictAck{generation, has_state_, lineage_, position_, std::move(digest), kept_.States()},
       "all computing has stopped");
}

}  // namespace lockstep::worker
