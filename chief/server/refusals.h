// Selects the refused callers that the log names: the first ten of each minute, and the number of the others. A flood
// of callers must not become a flood of lines.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_SERVER_REFUSALS_H_
#define LOCKSTEP_CHIEF_SERVER_REFUSALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::chief {

class Refusals {
 public:
  static constexpr uint64_t kNamedPerMinute = 10;

  // Counts a refusal at `now`, which never goes backwards. Returns the lines to log: the number of unnamed ones of the
  // minute before, and this one.
  std::vector<std::string> Add(absl::Time now, absl::string_view peer, absl::string_view why) {
    std::vector<std::string> lines;
    if (now - minute_ >= absl::Minutes(1)) {
      if (of_minute_ > kNamedPerMinute) {
        lines.push_back(absl::StrCat("refused ", of_minute_ - kNamedPerMinute, " callers more in that minute"));
      }
      minute_ = now;
      of_minute_ = 0;
    }
    ++total_;
    if (++of_minute_ <= kNamedPerMinute) lines.push_back(absl::StrCat("refused ", peer, ": ", why));
    return lines;
  }
  uint64_t total() const { return total_; }

 private:
  absl::Time minute_ = absl::InfinitePast();
  uint64_t of_minute_ = 0;
  uint64_t total_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_REFUSALS_H_
