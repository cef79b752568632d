// Tracks a storage that refuses for a while, such as a full disk: when to retry, and when to tell people. Retries back
// off from kFirstRetry to kLastRetry. The cause is announced at once and then every kSayEvery, or more often while the
// job waits for it.
//
// Threading: thread-compatible; owned by the part whose writes it tracks.
#ifndef LOCKSTEP_CHIEF_CORE_STORAGE_TROUBLE_H_
#define LOCKSTEP_CHIEF_CORE_STORAGE_TROUBLE_H_

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep::chief {

class StorageTrouble {
 public:
  static constexpr absl::Duration kFirstRetry = absl::Seconds(1);
  static constexpr absl::Duration kLastRetry = absl::Seconds(10);
  static constexpr absl::Duration kSayEvery = absl::Minutes(1);
  static constexpr absl::Duration kSayEveryToWaiting = absl::Seconds(10);

  bool active() const { return active_; }
  // The instant before which nothing is written; InfinitePast while the storage works.
  absl::Time retry_at() const { return active_ ? retry_at_ : absl::InfinitePast(); }

  // The storage refused, for the reason in `text`. Returns true if people are to hear of it. `job_waits`: nothing else
  // goes on meanwhile.
  bool Refused(absl::Time now, std::string text, bool job_waits = false) {
    wait_ = active_ ? std::min(2 * wait_, kLastRetry) : kFirstRetry;
    if (!active_) since_ = now;
    const bool say = !active_ || now - said_ >= (job_waits ? kSayEveryToWaiting : kSayEvery);
    if (say) said_ = now;
    active_ = true;
    retry_at_ = now + wait_;
    text_ = std::move(text);
    return say;
  }
  // An attempt is under way: another follows only after its answer.
  void TryAgain() { retry_at_ = absl::InfiniteFuture(); }
  // The storage accepted a write. Returns how long it had refused; zero if it had not.
  absl::Duration Worked(absl::Time now) {
    if (!std::exchange(active_, false)) return absl::ZeroDuration();
    text_.clear();
    return now - since_;
  }

  // The cause and how long it lasts, for people; empty while the storage works.
  std::string Text(absl::Time now) const {
    if (!active_ || now == since_) return text_;
    return absl::StrCat(text_, " (refused for ", absl::FormatDuration(absl::Trunc(now - since_, absl::Seconds(1))),
                        ")");
  }

  void ShiftDeadlines(absl::Duration gap) { retry_at_ += gap; }

 private:
  bool active_ = false;
  absl::Time since_;
  absl::Time said_;
  absl::Time retry_at_;
  absl::Duration wait_;
  std::string text_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_STORAGE_TROUBLE_H_
