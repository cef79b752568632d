// The way back after replicas differed (rule 22): when it begins, what is recorded about it, and what happens if it is
// not the first one.
//
//   1 none ──▶ 2 gathering ──▶ 3 at rest ──RecordRepair──▶ 4 recording ──RepairRecorded──▶ 1 none
//        a difference   │ all digests of that step are in, or      ▲     │
//                       ▼ the limit passed: the generation breaks  └─────┘ refused for a while
//
// No worker is told to go back or to leave before the decision is durable (4). If the chief dies earlier, all workers
// are as they were, and the next chief finds the difference again.
//
// A difference soon after the previous one points to a permanent fault. The host that was named both times is excluded
// if workers on other hosts suffice; otherwise the job stops.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_AUDIT_REPAIR_H_
#define LOCKSTEP_CHIEF_CORE_AUDIT_REPAIR_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/audit_return.h"
#include "chief/core/policy.h"
#include "chief/core/storage_trouble.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class AuditRepair {
 public:
  // Two differences that are at most this many steps apart count as a permanent fault.
  static constexpr uint64_t kSoon = 1000;

  // A replica in the minority.
  struct Named {
    Incarnation id;
    std::string name;
    std::string host;
  };

  // `last`: the newest repair of the job, by an earlier chief.
  explicit AuditRepair(std::optional<PastRepair> last) : last_(std::move(last)) {}

  bool pending() const { return found_.has_value(); }
  // The difference that was found, as text for people; empty if no repair is pending.
  const std::string& finding() const { return finding_; }
  const std::vector<Named>& named() const { return named_; }
  // REQUIRES: pending().
  uint64_t found_at() const { return *found_; }

  // Replicas differ at `step`; digests of the other members are awaited until `limit`. Returns false if a repair is
  // pending already.
  bool Found(uint64_t step, std::string finding, absl::Time limit) {
    if (pending()) return false;
    found_ = step;
    finding_ = std::move(finding);
    limit_ = limit;
    return true;
  }
  // Whether digests are still awaited. False once the repair was ordered.
  bool Gathers() const { return pending() && !order_.has_value(); }
  // Until when digests are awaited.
  absl::Time limit() const { return Gathers() ? limit_ : absl::InfiniteFuture(); }

  // Whether RecordRepair may be emitted now: none is under way, and no retry pause runs.
  bool MayRecord(absl::Time now) const { return pending() && !recording_ && now >= trouble_.retry_at(); }
  // The repair to record. The first call fixes the workers in the minority as they are known by then; a retry repeats
  // it unchanged.
  const RecordRepair& Record(const Lineage& lineage, std::vector<Named> named) {
    if (!order_.has_value()) {
      named_ = std::move(named);
      order_ = RecordRepair{lineage, *found_, {}, finding_};
      for (const Named& each : named_) order_->hosts.push_back(each.host);
    }
    recording_ = true;
    return *order_;
  }
  // The storage refused the record, for the reason in `what`. Returns true if people are to hear of it.
  bool Refused(absl::Time now, std::string what) {
    recording_ = false;
    return trouble_.Refused(now, std::move(what));
  }
  // The host that was named twice in a row, within kSoon steps; empty if there is none.
  std::string NamedTwice() const {
    if (!IsSoon()) return "";
    for (const Named& each : named_) {
      if (std::count(last_->hosts.begin(), last_->hosts.end(), each.host) != 0) return each.host;
    }
    return "";
  }
  // Whether this difference follows the previous one within kSoon steps.
  bool IsSoon() const { return pending() && last_.has_value() && *found_ <= last_->found_at + kSoon; }
  // Whether this is the repair that was ordered.
  bool IsOrdered(const Lineage& lineage) const { return order_.has_value() && order_->lineage == lineage; }
  void Done(absl::Time now) {
    last_ = PastRepair{*found_, order_->hosts};
    trouble_.Worked(now);
    found_.reset();
    order_.reset();
    finding_.clear();
    named_.clear();
    recording_ = false;
  }

  // The part that follows once the repair is recorded.
  AuditReturn& way() { return way_; }

  // What the job waits for, as text for people; empty if it waits for nothing here.
  std::string Text(absl::Time now) const {
    if (way_.pending()) return "a worker to take up the audited state that it keeps in memory";
    if (!pending()) return "";
    return absl::StrCat("the way back to the newest audited state, because ", finding_,
                        trouble_.active() ? absl::StrCat("; ", trouble_.Text(now)) : "");
  }
  absl::Time NextDeadline(absl::Time now) const {
    const absl::Time next = recording_ ? absl::InfiniteFuture() : std::min({limit(), Retry(), way_.limit()});
    return next > now ? next : absl::InfiniteFuture();
  }
  void ShiftDeadlines(absl::Duration gap) {
    limit_ += gap;
    way_.ShiftDeadlines(gap);
    trouble_.ShiftDeadlines(gap);
  }

 private:
  absl::Time Retry() const { return pending() && trouble_.active() ? trouble_.retry_at() : absl::InfiniteFuture(); }

  std::optional<PastRepair> last_;
  std::optional<uint64_t> found_;  // the step of the difference
  std::string finding_;
  absl::Time limit_;
  std::vector<Named> named_;
  std::optional<RecordRepair> order_;  // once it was emitted
  bool recording_ = false;
  StorageTrouble trouble_;
  AuditReturn way_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AUDIT_REPAIR_H_
