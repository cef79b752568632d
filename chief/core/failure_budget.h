// Stops a job that keeps failing by its own fault (rule 15). A process that is lost without a crash signal costs
// nothing, however often. A reported error or a crash signal costs one unit; each newly published step gives one back.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_FAILURE_BUDGET_H_
#define LOCKSTEP_CHIEF_CORE_FAILURE_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/limits.h"

namespace lockstep::chief {

class FailureBudget {
 public:
  static constexpr uint32_t kGenerationsInARow = 3;

  explicit FailureBudget(uint32_t allowed) : allowed_(allowed) {}

  // A worker on `host` reported an error, or died of a crash signal.
  void Spend(std::string cause, const std::string& host) {
    if (spent_by_.size() < kMaxWorkers || spent_by_.count(host) != 0) ++spent_by_[host];
    if (spent_ == 0) first_cause_ = cause;
    last_cause_ = std::move(cause);
    ++spent_;
  }
  // An error on `host` broke a generation.
  void GenerationBroken(const std::string& host) {
    same_host_ = broken_in_a_row_ == 0 || (same_host_ && host == broken_by_);
    broken_by_ = host;
    ++broken_in_a_row_;
  }
  // A new step was agreed.
  void StepAgreed() { broken_in_a_row_ = 0; }
  // Gives back what `host` spent: the job continues without it.
  void GiveBack(const std::string& host) {
    const auto found = spent_by_.find(host);
    if (found == spent_by_.end()) return;
    spent_ -= std::min(spent_, found->second);
    spent_by_.erase(found);
    broken_in_a_row_ = 0;
  }
  // A save of `step` was published.
  void SavePublished(uint64_t step) {
    if (step <= highest_published_) return;
    highest_published_ = step;
    spent_ = spent_ == 0 ? 0 : spent_ - 1;
  }

  // Why the job must stop; empty while it may go on. `spare`: a host that the job will exclude once it has failed often
  // enough; generations that only this host broke do not stop the job. Empty if there is none.
  std::string Verdict(const std::string& spare) const {
    const bool spared = same_host_ && !spare.empty() && broken_by_ == spare;
    if (broken_in_a_row_ >= kGenerationsInARow && !spared) {
      return absl::StrCat(broken_in_a_row_,
                          " generations in a row were broken by an error without a step between: ", last_cause_,
                          ". Fix the cause and start the job again; it resumes.");
    }
    if (spent_ > allowed_) {
      return absl::StrCat("the failure budget is spent (", spent_, " errors, failure.max_failures is ", allowed_,
                          "); first: ", first_cause_, "; last: ", last_cause_);
    }
    return "";
  }
  uint32_t spent() const { return spent_; }

 private:
  uint32_t allowed_;
  uint32_t spent_ = 0;
  std::map<std::string, uint32_t> spent_by_;  // by host
  uint32_t broken_in_a_row_ = 0;
  std::string broken_by_;  // the host that broke the newest of them
  bool same_host_ = true;  // whether it broke all of them
  uint64_t highest_published_ = 0;
  std::string first_cause_;
  std::string last_cause_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_FAILURE_BUDGET_H_
