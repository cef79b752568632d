#include "chief/standby/standby_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

// Whether a chief that is started on the same job after one that ended with this code would go on. Errors of the job
// itself are the same on every machine.
bool GoesOnAfter(int exit_code) {
  return exit_code == kExitPreempted || exit_code == kExitStorage || exit_code == kExitFenced;
}

}  // namespace

StandbyWatch::Verdict StandbyWatch::TakeOver(std::string reason) {
  reason_ = std::move(reason);
  seen_.reset();
  leased_term_ = 0;
  last_look_.reset();
  silence_ = absl::ZeroDuration();
  return Verdict::kTakeOver;
}

bool StandbyWatch::LeaseEnded(int64_t term, bool leased) {
  if (leased) leased_term_ = term;
  lease_ended_ = !leased && leased_term_ == term && term != 0;
  return lease_ended_;
}

StandbyWatch::Verdict StandbyWatch::Look(absl::Time now, const JobSight& sight) {
  const std::optional<JobSight> before = std::exchange(seen_, sight);
  const std::optional<absl::Time> last = std::exchange(last_look_, now);
  if (sight.ended_with.has_value()) {
    if (GoesOnAfter(*sight.ended_with)) {
      return TakeOver(absl::StrCat("the chief of term ", sight.term, " ended with ", *sight.ended_with));
    }
    exit_code_ = *sight.ended_with;
    reason_ = absl::StrCat("the chief of term ", sight.term, " ended with ", exit_code_);
    return Verdict::kEnd;
  }
  if (lease_ended_ && leased_term_ == sight.term) {
    return TakeOver(absl::StrCat("the lease of the chief of term ", sight.term, " in etcd has ended"));
  }
  if (before.has_value() && before->term == sight.term && before->lock_holder.has_value() &&
      !sight.lock_holder.has_value()) {
    return TakeOver(absl::StrCat(*before->lock_holder, " is gone"));
  }
  if (before != sight) {
    silence_ = absl::ZeroDuration();
    return Verdict::kWatching;
  }
  if (last.has_value()) silence_ += std::min(now - *last, kLongestLook);
  const absl::Duration limit = sight.term == 0 || sight.serves ? kSilence : kTakingOver;
  if (silence_ < limit) return Verdict::kWatching;
  return TakeOver(sight.term == 0 ? "no chief has begun the job"
                                  : absl::StrCat("the chief of term ", sight.term, " has been silent for ",
                                                 absl::FormatDuration(limit)));
}

}  // namespace lockstep::chief
