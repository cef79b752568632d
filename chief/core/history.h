// The history of a job's state: the lineage whose steps are being computed, and the lineages from which it continued.
//
// Under `reduction: exact` a job keeps one lineage. Under `fast` the bits of a step depend on which workers compute it,
// so every generation has a lineage of its own ("<that of the job>+<generation>"): it continues from a state of the
// previous one or begins anew from a checkpoint. The steps of an earlier lineage count up to the step at which it was
// left. A worker that wakes from a long pause may hold later steps of it, which do not count.
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

  // From `step` on the history continues as `lineage`. REQUIRES: the state at `step` from which it continues is
  // included.
  void GoOnAs(const Lineage& lineage, uint64_t step) {
    for (auto& [name, last] : left_) last = std::min(last, step);
    left_[lineage_] = step;
    if (left_.size() > kMaxLeft) {
      left_.erase(std::min_element(left_.begin(), left_.end(),
                                   [](const auto& a, const auto& b) { return a.second < b.second; }));
    }
    lineage_ = lineage;
  }

  // Nothing computed so far counts: `lineage` begins from a checkpoint.
  void BeginAs(const Lineage& lineage) {
    left_.clear();
    lineage_ = lineage;
  }

  // The same history has a newer name, which an earlier chief gave it.
  void Rename(const Lineage& lineage) { lineage_ = lineage; }

 private:
  static constexpr size_t kMaxLeft = 64;  // a worker with a state of an older one receives the state anew

  Lineage lineage_;
  std::map<Lineage, uint64_t> left_;  // by lineage: its last step that counts
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_HISTORY_H_
