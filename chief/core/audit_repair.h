// The way back after replicas differed (rule 22): when it begins, what of it is written, and what follows when it is
// not the first.
//
//   1 none ──▶ 2 gathering ──▶ 3 at rest ──RecordRepair──▶ 4 recording ──RepairRecorded──▶ 1 none
//        a difference   │ all digests of that step are in, or      ▲     │
//                       ▼ the limit passed: the generation breaks  └─────┘ refused for a while
//
// Nobody is told to go back, or to leave, before the storage has the decision (4): a chief that dies earlier leaves
// everybody as they are, and the next one finds the difference again.
//
// A difference that is found soon after the one before says that something is wrong for good: the host that was named
// both times is left out where enough workers of other hosts are there, else the job stops.
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
  // Steps from one difference to the next within which the next is one too many.
  static constexpr uint64_t kSoon = 1000;

  // A replica in the minority.
  struct Named {
    Incarnation id;
    std::string name;
    std::string host;
  };

  // `last`: the newest repair of the job, of an earlier chief.
  explicit AuditRepair(std::optional<PastRepair> last) : last_(std::move(last)) {}

  bool pending() const { return found_.has_value(); }
  // What was found, for people; empty while nothing is pending.
  const std::string& finding() const { return finding_; }
  const std::vector<Named>& named() const { return named_; }
  // REQUIRES: pending().
  uint64_t found_at() const { return *found_; }

  // Replicas differ at `step`. Digests of the others are awaited until `limit`. False: one is pending already.
  bool Found(uint64_t step, std::string finding, absl::Time limit) {
    if (pending()) return false;
    found_ = step;
    finding_ = std::move(finding);
    limit_ = limit;
    return true;
  }
  // Whether digests are awaited: not any more once the way back was ordered.
  bool Gathers() const { return pending() && !order_.has_value(); }
  // Until when.
  absl::Time limit() const { return Gathers() ? limit_ : absl::InfiniteFuture(); }

  // Whether RecordRepair is to be given now: nothing is under way, and the storage is not waited for.
  bool MayRecord(absl::Time now) const { return pending() && !recording_ && now >= trouble_.retry_at(); }
  // What to write: the first time with those in the minority as they are known by now, and again as it was.
  const RecordRepair& Record(const Lineage& lineage, std::vector<Named> named) {
    if (!order_.has_value()) {
      named_ = std::move(named);
      order_ = RecordRepair{lineage, *found_, {}, finding_};
      for (const Named& each : named_) order_->hosts.push_back(each.host);
    }
    recording_ = true;
    return *order_;
  }
  // The storage refused it for the reason in `what`. True when people are to hear of it.
  bool Refused(absl::Time now, std::string what) {
    recording_ = false;
    return trouble_.Refused(now, std::move(what));
  }
  // The host that was named twice in a row, within kSoon steps; empty: none was.
  std::string NamedTwice() const {
    if (!IsSoon()) return "";
    for (const Named& each : named_) {
      if (std::count(last_->hosts.begin(), last_->hosts.end(), each.host) != 0) return each.host;
    }
    return "";
  }
  // Whether this difference follows the one before within kSoon steps.
  bool IsSoon() const { return pending() && last_.has_value() && *found_ <= last_->found_at + kSoon; }
  // It is durable.
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

  // What follows once it is durable.
  AuditReturn& way() { return way_; }

  // What is waited for, for people; empty while nothing is.
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
  std::optional<RecordRepair> order_;  // once it was given
  bool recording_ = false;
  StorageTrouble trouble_;
  AuditReturn way_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AUDIT_REPAIR_H_
