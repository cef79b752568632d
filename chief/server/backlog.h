// Buffers text that is to be appended to a file of the job: what the storage refuses is kept for the next attempt, up
// to a limit.
//
// Threading: thread-compatible; Write blocks on the storage.
#ifndef LOCKSTEP_CHIEF_SERVER_BACKLOG_H_
#define LOCKSTEP_CHIEF_SERVER_BACKLOG_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/log/log.h"

namespace lockstep::chief {

class Backlog {
 public:
  static constexpr size_t kMostBytes = 16 << 20;

  // `what`: names the text in the log. `append`: makes the whole text durable or fails; after a failure it is called
  // with the same text again, followed by newer text.
  Backlog(std::string what, std::function<absl::Status(const std::string&)> append, size_t most_bytes = kMostBytes)
      : what_(std::move(what)), append_(std::move(append)), most_bytes_(most_bytes) {}

  // Appends the kept text and `more`. A failure is logged once, until an append succeeds. Text beyond the limit is
  // dropped, which is logged too.
  void Write(const std::string& more) {
    const bool failed_before = !kept_.empty();
    kept_ += more;
    if (kept_.empty()) return;
    const absl::Status status = append_(kept_);
    if (status.ok()) {
      kept_.clear();
      return;
    }
    if (!failed_before) {
      LS_LOG(warn, what_, ": ", status.message(), "; they are written when the storage takes them");
    }
    if (kept_.size() <= most_bytes_) return;
    LS_LOG(warn, what_, ": ", kept_.size(), " bytes are dropped, because the storage has not taken them for long");
    kept_.clear();
  }

  // Whether no text is kept.
  bool empty() const { return kept_.empty(); }
  const std::string& what() const { return what_; }

 private:
  const std::string what_;
  const std::function<absl::Status(const std::string&)> append_;
  const size_t most_bytes_;
  std::string kept_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_BACKLOG_H_
