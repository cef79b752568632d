#include "tests/simulation/oracle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::simulation {

void Oracle::Violation(std::string what) { violations_.push_back(std::move(what)); }

void Oracle::CheckState(const std::string& who, const Lineage& lineage, const ReplicaState& state) {
  if (Excused(lineage, state.step)) return;
  if (state.step < 0 || state.step > reference_.end_step()) {
    return Violation(absl::StrCat(who, ": a state at step ", state.step, " of ", reference_.end_step()));
  }
  if (!(reference_.at(state.step) == state)) {
    Violation(absl::StrCat(who, ": the state at step ", state.step, " differs from the undisturbed run's"));
  }
}

void Oracle::CheckLedger(const std::string& who, const EvaluationLedger& ledger) {
  if (!(ledger == reference_.ledger())) {
    Violation(absl::StrCat(who, ": its evaluations are not those of an undisturbed run: the best was step ",
                           ledger.best_step, " instead of ", reference_.ledger().best_step));
  }
}

void Oracle::Applied(const std::string& who, const Lineage& lineage, const ReplicaState& state,
                     std::vector<uint64_t> shards) {
  ++applied_;
  CheckState(who, lineage, state);
  // The logical shards of a step are its samples, each once.
  std::sort(shards.begin(), shards.end());
  bool once = shards.size() == static_cast<size_t>(job_.logical_shards);
  for (size_t i = 0; once && i < shards.size(); ++i) once = shards[i] == i;
  if (!once) Violation(absl::StrCat(who, ": step ", state.step, " did not use each of its samples once"));
  highest_applied_ = std::max(highest_applied_, state.step);
}

void Oracle::Replaced(const std::string& who, const Lineage& lineage, bool had, const ReplicaState& before,
                      const ReplicaState& after) {
  CheckState(who, lineage, after);
  if (had && before.step > after.step) {
    Violation(absl::StrCat(who, ": a live replica went back from step ", before.step, " to ", after.step));
  }
}

void Oracle::Started(const std::string& who, const Generation& generation, const Position& position) {
  const auto [it, first] = started_.emplace(generation, position);
  if (!first && !(it->second == position)) {
    Violation(absl::StrCat(who, ": starts generation ", generation.ToString(), " at ", position.ToString(),
                           ", another member at ", it->second.ToString()));
  }
}

void Oracle::Published(Term term, const SnapshotId& snapshot, const Digest& digest, bool accepted) {
  if (!accepted) return;
  const uint64_t step = snapshot.step;
  if (term < newest_scan_) {
    Violation(absl::StrCat("term ", term, " publishes step ", step, " after term ", newest_scan_, " took over"));
  }
  if (Excused(snapshot.lineage, static_cast<int64_t>(step))) return;
  if (static_cast<int64_t>(step) > reference_.end_step() ||
      digest != digest_of_(reference_.at(static_cast<int64_t>(step)))) {
    Violation(absl::StrCat("term ", term, " publishes another state as step ", step));
  }
}

void Oracle::Scanned(Term term, int64_t newest) {
  newest_scan_ = std::max(newest_scan_, term);
  if (newest < highest_committed_) {
    Violation(absl::StrCat("term ", term, " finds step ", newest, " as the newest checkpoint, but step ",
                           highest_committed_, " was committed"));
  }
}

// ---- bits that flip -------------------------------------------------------------------------------------------------

bool Oracle::Excused(const Lineage& lineage, int64_t step) const {
  if (spoilt_.empty()) return false;
  const auto found = spoilt_.find(JobLineage(lineage));
  return found != spoilt_.end() && step >= found->second.from;
}

bool Oracle::IsRight(const ReplicaState& state) const {
  return state.step >= 0 && state.step <= reference_.end_step() && reference_.at(state.step) == state;
}

void Oracle::Flipped(const Seat& seat, const Lineage& lineage, int64_t step) {
  const auto [it, first] = spoilt_.emplace(JobLineage(lineage), Spoilt{step});
  if (!first) it->second.from = std::min(it->second.from, step);
  hit_[seat.generation].insert(seat.rank);
}

// Two replicas that step on from different states never come to equal ones, so members that were all hit and are equal
// were hit in the same way at the same step.
void Oracle::Digested(const Seat& seat, const Lineage& lineage, const ReplicaState& state) {
  const auto hit = hit_.find(seat.generation);
  if (hit == hit_.end() || hit->second.count(seat.rank) == 0 || IsRight(state)) return;
  std::set<uint32_t>& ranks = hit_alike_[{state.step, seat.generation, DigestOf(state)}];
  ranks.insert(seat.rank);
  if (ranks.size() < seat.size) return;
  held_by_all_.insert(DigestOf(state));
  spoilt_[JobLineage(lineage)].all_hit_alike = true;
}

bool Oracle::AllHitAlike(const Lineage& lineage) const {
  const auto found = spoilt_.find(JobLineage(lineage));
  return found != spoilt_.end() && found->second.all_hit_alike;
}

bool Oracle::SomeHitAlike(int64_t step) const {
  return std::any_of(hit_alike_.begin(), hit_alike_.end(),
                     [step](const auto& entry) { return std::get<0>(entry.first) == step && entry.second.size() > 1; });
}

void Oracle::FlipGone(const Lineage& lineage) {
  const auto found = spoilt_.find(JobLineage(lineage));
  if (found != spoilt_.end()) found->second.gone = true;
}

void Oracle::BeginAlike(const Lineage& lineage, const ReplicaState& state) {
  const auto found = spoilt_.find(JobLineage(lineage));
  if (found == spoilt_.end()) return;
  if (!IsRight(state)) found->second.alike = true;
}

bool Oracle::BeyondSight(const Lineage& lineage) const {
  const auto found = spoilt_.find(JobLineage(lineage));
  return found != spoilt_.end() && (found->second.gone || found->second.alike);
}

void Oracle::Differs(const Lineage& lineage, const std::string& reason) {
  if (!spoilt(lineage)) Violation(absl::StrCat("replicas are said to differ, but none was hit: ", reason));
}

void Oracle::WentBack(const Lineage& from, const Lineage& lineage, const ReplicaState& checkpoint) {
  given_up_.insert(JobLineage(from));
  // What came after it is set aside.
  highest_committed_ = std::min(highest_committed_, checkpoint.step);
  if (IsRight(checkpoint) || GoesOnWrong(from, lineage, checkpoint)) return;
  Violation(absl::StrCat("the job goes back to step ", checkpoint.step, ", whose bits are wrong"));
}

void Oracle::TookUp(const std::string& who, const Lineage& from, const Lineage& lineage, const ReplicaState& copy) {
  if (JobLineage(from) == JobLineage(lineage)) {
    return Violation(absl::StrCat(who, ": takes up a copy of step ", copy.step, ", but the job did not go back"));
  }
  if (IsRight(copy) || GoesOnWrong(from, lineage, copy)) return;
  Violation(absl::StrCat(who, ": takes up a copy of step ", copy.step, ", whose bits are wrong"));
}

bool Oracle::GoesOnWrong(const Lineage& from, const Lineage& lineage, const ReplicaState& state) {
  const bool held_by_all = held_by_all_.count(DigestOf(state)) != 0;
  if (!held_by_all && !BeyondSight(from)) return false;
  const Spoilt wrong{state.step, true, true, held_by_all || AllHitAlike(from)};
  const auto [it, first] = spoilt_.emplace(JobLineage(lineage), wrong);
  const int64_t since = first ? state.step : std::min(it->second.from, state.step);
  it->second = wrong;
  it->second.from = since;
  return true;
}

}  // namespace lockstep::simulation
