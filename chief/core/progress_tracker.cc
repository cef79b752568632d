#include "chief/core/progress_tracker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

void ProgressTracker::Begin(const Lineage& lineage, const std::map<Incarnation, Position>& members) {
  applied_ = members;
  at_step_.clear();
  for (const auto& [member, position] : members) ++at_step_[position.step];
  if (lineage == lineage_ || members.empty()) return;
  lineage_ = lineage;
  // Another history: its steps are other steps, also where the numbers were seen before.
  agreed_ = members.begin()->second.step;
  told_ = agreed_;
  pending_.clear();
  evaluations_.clear();
  evaluated_.clear();
  told_evaluations_ = 0;
}

void ProgressTracker::GoOnAs(const Lineage& lineage, uint64_t step) {
  lineage_ = lineage;
  // Later steps led to a state that nobody alive holds. They are computed again, and told again.
  agreed_ = std::min(agreed_, step);
  told_ = std::min(told_, step);
  told_evaluations_ = std::min(told_evaluations_, step);
  pending_.erase(pending_.upper_bound(step), pending_.end());
  evaluations_.erase(evaluations_.upper_bound(step), evaluations_.end());
  evaluated_.erase(evaluated_.upper_bound(step), evaluated_.end());
}

void ProgressTracker::AddRecords(const std::vector<StepRecord>& records) {
  for (const StepRecord& record : records) {
    if (record.step > told_ && pending_.size() < kMaxPending) pending_.emplace(record.step, record);
  }
}

void ProgressTracker::Applied(const Incarnation& member, const Position& position) {
  const auto it = applied_.find(member);
  if (it == applied_.end()) return;
  if (position <= it->second) return;
  if (position.step != it->second.step) {
    const auto before = at_step_.find(it->second.step);
    if (--before->second == 0) at_step_.erase(before);
    ++at_step_[position.step];
  }
  it->second = position;
}

std::optional<StepsAgreed> ProgressTracker::TakeAgreed() {
  if (applied_.empty()) return std::nullopt;
  const uint64_t lowest = LowestApplied();
  if (lowest <= agreed_ && told_any_) return std::nullopt;
  agreed_ = std::max(agreed_, lowest);
  told_any_ = true;
  StepsAgreed out{lineage_, agreed_, {}};
  while (!pending_.empty() && pending_.begin()->first <= agreed_) {
    out.records.push_back(std::move(pending_.begin()->second));
    pending_.erase(pending_.begin());
  }
  told_ = agreed_;
  return out;
}

std::string ProgressTracker::AddSlices(const EvalReport& report) {
  if (report.lineage != lineage_ || report.step <= told_evaluations_ || evaluated_.count(report.step) != 0) return "";
  std::string finding;
  auto& slices = evaluations_[report.step];
  for (const SliceResult& slice : report.slices) {
    if (slice.slice >= eval_slices_) continue;
    const auto [it, added] = slices.emplace(slice.slice, slice);
    if (!added && !(it->second == slice)) {
      finding = absl::StrCat("slice ", slice.slice, " of the evaluation of step ", report.step,
                             " came twice with other values");
    }
  }
  const size_t most = std::max<size_t>(16, kMaxSlices / std::max<uint64_t>(1, eval_slices_));
  while (evaluations_.size() > most) evaluations_.erase(evaluations_.begin());
  return finding;
}

std::vector<EvaluationDone> ProgressTracker::TakeEvaluations() {
  std::vector<EvaluationDone> done;
  for (auto it = evaluations_.begin(); it != evaluations_.end();) {
    if (it->first > agreed_ || it->second.size() < eval_slices_) {
      ++it;
      continue;
    }
    EvaluationDone evaluation{lineage_, it->first, {}};
    for (auto& [index, slice] : it->second) evaluation.slices.push_back(std::move(slice));
    evaluated_.insert(it->first);
    // Evaluations that are no longer remembered as emitted are not emitted again.
    while (evaluated_.size() > kMaxPositions) {
      told_evaluations_ = std::max(told_evaluations_, *evaluated_.begin());
      evaluated_.erase(evaluated_.begin());
    }
    done.push_back(std::move(evaluation));
    it = evaluations_.erase(it);
  }
  return done;
}

}  // namespace lockstep::chief
