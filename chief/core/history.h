// The history of a job's state: the lineage whose steps are computed now, and the lineages that it went on from.
//
// Under `reduction: exact` a job keeps one lineage. Under `fast` a step has other bits when other workers compute it,
// so every generation is a lineage of its own ("<that of the job>+<generation>"): it goes on from a state of the one
// before, or begins anew from a checkpoint. What an earlier lineage computed counts up to the step where it was left,
// and nothing beyond: a worker that wakes from a long pause holds steps of another life.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_CORE_HISTORY_H_
#define LOCKSTEP_CHIEF_CORE_HISTORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "common/protocol/ids.h"

namespace lockstep::chief {

class History {
 public:
  explicit History(Lineage lineage) : lineage_(std::move(lineage)) {}

  const Lineage& lineage() const { return lineage_; }

  // Whether the state of `lineage` at `step` belongs to this history.
  bool Includes(const Lineage& lineage, uint64_t step) const {
    if (lineage == lineage_) return true;
    const auto left = left_.find(lineage);
    return left != left_.end() && step <= left->second;
  }

  // The steps after `step` are those of `lineage`. REQUIRES: the state at `step` that it goes on from is included.
  void GoOnAs(const Lineage& lineage, uint64_t step) {
    for (auto& [name, last] : left_) last = std::min(last, step);
    left_[lineage_] = step;
    if (left_.size() > kMaxLeft) {
      left_.erase(std::min_element(left_.begin(), left_.end(),
                                   [](const auto& a, const auto& b) { return a.second < b.second; }));
    }
    lineage_ = lineage;
  }

  // What was computed so far does not count: `lineage` begins from a checkpoint.
  void BeginAs(const Lineage& lineage) {
    left_.clear();
    lineage_ = lineage;
  }

  // The same history is known elsewhere under a newer name than here (an earlier chief gave it).
  void Rename(const Lineage& lineage) { lineage_ = lineage; }

 private:
  static constexpr size_t kMaxLeft = 64;  // whoever holds an older one receives the state

  Lineage lineage_;
  std::map<Lineage, uint64_t> left_;  // the last step that counts
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_HISTORY_H_
