// The job's kernel plan: unknown, on its way from the worker that made it to the storage, or known, together with the
// digest of the data for which it was made.
//
//   1 unknown ──Accept──▶ 2 being stored ──Stored──▶ 3 known ──Discard (nobody can run it)──▶ 1
//                              └─ refused for a while: stored again when RetryDue says so
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_PLAN_TRACKER_H_
#define LOCKSTEP_CHIEF_CORE_PLAN_TRACKER_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/events.h"
#include "chief/core/storage_trouble.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class PlanTracker {
 public:
  // The most bytes of a hash or digest that becomes a file name or a line in the storage.
  static constexpr size_t kMaxNameBytes = 128;

  // The plan that an earlier chief stored; an empty hash: none.
  PlanTracker(std::string hash, Digest data_digest) : hash_(std::move(hash)), data_digest_(std::move(data_digest)) {}

  bool known() const { return !hash_.empty(); }
  const std::string& hash() const { return hash_; }
  const Digest& data_digest() const { return data_digest_; }

  // Why this plan cannot be stored; empty if it can.
  static std::string WhatIsWrong(const PlanMade& made);
  // Takes the plan that a worker made. REQUIRES: WhatIsWrong(made) is empty.
  const StorePlan& Accept(const Incarnation& maker, const std::string& name, const PlanMade& made);
  bool IsBeingStored() const { return being_stored_.has_value(); }
  void Stored(const PlanStored& event, absl::Time now);
  // The storage refused the plan, for the reason in `what`. Returns true if people are to hear of it.
  bool Refused(absl::Time now, std::string what) { return trouble_.Refused(now, std::move(what)); }
  // The action that retries the store, if a retry is due.
  std::optional<StorePlan> RetryDue(absl::Time now);
  // Why the plan is not stored; empty while the storage works.
  std::string TroubleText(absl::Time now) const { return trouble_.active() ? trouble_.Text(now) : ""; }

  // Whether `worker` made the plan, under this chief.
  bool IsMadeBy(const Incarnation& worker) const { return maker_ == worker; }
  void Discard() {
    hash_.clear();
    data_digest_.clear();
  }
  // Whether the data with this digest are the job's. A job without data so far adopts them.
  bool AcceptData(const Digest& digest) {
    if (data_digest_.empty()) data_digest_ = digest;
    return data_digest_ == digest;
  }

  void ShiftDeadlines(absl::Duration gap) { trouble_.ShiftDeadlines(gap); }

 private:
  std::string hash_;
  Digest data_digest_;
  std::optional<StorePlan> being_stored_;
  StorageTrouble trouble_;
  Incarnation maker_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_PLAN_TRACKER_H_
