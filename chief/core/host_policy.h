// What an error costs (rule 15). Every error counts against its host. A host that failed often enough is excluded if
// the others suffice, and what its errors spent is given back; any other error spends from the job's failure budget.
//
//   1 trusted ──errors, and others suffice──▶ 2 left out: its workers leave, its errors are given back ──forgiven──▶ 1
//
// Invariants
//   * A host is excluded only if the workers on the others reach the minimum; the only host of a job never is.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_HOST_POLICY_H_
#define LOCKSTEP_CHIEF_CORE_HOST_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/core_context.h"
#include "chief/core/failure_budget.h"
#include "chief/core/host_scores.h"
#include "chief/core/policy.h"
#include "chief/core/roster.h"

namespace lockstep::chief {

class HostPolicy {
 public:
  HostPolicy(const JobPolicy& policy, const RecoveredState& recovered)
      : budget_(policy.max_failures), scores_(policy.exclude_host_after, recovered.hosts, recovered.trained_for) {
    budget_.SavePublished(recovered.checkpoint.step);
  }

  // Begins a new event: clears left_out().
  void BeginEvent() { left_out_.clear(); }
  // Hosts that this event left out.
  const std::vector<std::string>& left_out() const { return left_out_; }

  void Came(const Worker& worker) { scores_.Came(worker.name(), worker.host); }
  // The host of the newest worker of this name; empty if it is not known.
  std::string HostOf(const std::string& name) const { return scores_.HostOf(name); }
  uint32_t spent() const { return budget_.spent(); }
  std::vector<HostRecord> Records() const { return scores_.Records(); }
  bool MayExclude() const { return scores_.MayExclude(); }
  bool AnyExcluded() const { return scores_.AnyExcluded(); }
  bool IsExcluded(const std::string& host) const { return scores_.IsExcluded(host); }
  // Why a worker of this host is refused.
  std::string RefusalText(const std::string& host) const { return scores_.RefusalText(host); }
  // Whether the job can go on without `host`, the hosts that are excluded already, and the workers that leave.
  bool OthersSuffice(const CoreContext& context, const std::string& host) const;

  // Counts an error of a process on `host`. Returns why the job must stop; empty if it need not.
  std::string CountFailure(const CoreContext& context, const std::string& host, const std::string& cause,
                           bool broke_generation);
  // The replica of `worker` differs from those of the majority.
  void CountMismatch(const CoreContext& context, const Worker& worker, const std::string& where);
  // Excludes `host`. REQUIRES: MayExclude() and OthersSuffice(context, host).
  void Exclude(const CoreContext& context, const std::string& host);
  // Marks workers on excluded hosts as leaving: they go at a boundary, and a state that only they hold is handed over
  // or saved first.
  void MarkExcluded(const CoreContext& context) const;

  // A new step was agreed.
  void StepAgreed() { budget_.StepAgreed(); }
  void SavePublished(const CoreContext& context, uint64_t step, absl::Duration trained_for);

 private:
  FailureBudget budget_;
  HostScores scores_;
  std::vector<std::string> left_out_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_HOST_POLICY_H_
