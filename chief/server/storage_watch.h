// Notices a storage that does not answer, such as a mount that hangs: the storage thread has been in one call for
// kSilent. The chief writes statistics every two seconds, so people hear of it within five.
//
// Threading: thread-compatible; ChiefLoop owns the only instance.
#ifndef LOCKSTEP_CHIEF_SERVER_STORAGE_WATCH_H_
#define LOCKSTEP_CHIEF_SERVER_STORAGE_WATCH_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep::chief {

class StorageWatch {
 public:
  static constexpr absl::Duration kLookEvery = absl::Milliseconds(500);
  static constexpr absl::Duration kSilent = absl::Seconds(3);
  static constexpr absl::Duration kSayEvery = absl::Minutes(1);

  bool Due(absl::Time now) const { return now >= next_; }
  // `stands`: what the thread has been doing for longer than kSilent, empty if nothing (liveness::LongActivityOf).
  // Returns a message for people; empty if there is none.
  std::string Look(absl::Time now, std::string stands) {
    next_ = now + kLookEvery;
    stands_ = std::move(stands);
    if (stands_.empty()) {
      if (since_ == absl::InfiniteFuture()) return "";
      const absl::Duration silent = now - std::exchange(since_, absl::InfiniteFuture());
      return absl::StrCat("the storage answers again, after ", absl::FormatDuration(absl::Trunc(silent, kUnit)));
    }
    if (since_ == absl::InfiniteFuture()) {
      since_ = now - kSilent;
      said_ = absl::InfinitePast();
    }
    if (now - said_ < kSayEvery) return "";
    said_ = now;
    return absl::StrCat("the storage has not answered for ", absl::FormatDuration(absl::Trunc(now - since_, kUnit)),
                        " (", stands_, "): steps go on, saves wait. Look at the file system of the job's directory");
  }
  // The call that the storage does not answer; empty while it answers.
  const std::string& stands() const { return stands_; }

 private:
  static constexpr absl::Duration kUnit = absl::Seconds(1);

  absl::Time next_ = absl::InfinitePast();
  absl::Time since_ = absl::InfiniteFuture();
  absl::Time said_ = absl::InfinitePast();
  std::string stands_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_STORAGE_WATCH_H_
