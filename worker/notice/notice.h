// Sources, besides SIGTERM, of the notice that a worker's machine is about to be taken away.
//
// Threading: thread-compatible; a source is used by one thread.
#ifndef LOCKSTEP_WORKER_NOTICE_NOTICE_H_
#define LOCKSTEP_WORKER_NOTICE_NOTICE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep::worker {

struct Notice {
  std::string what;                             // the reason, for messages
  absl::Duration grace = absl::ZeroDuration();  // until the machine is gone; zero: unknown
};

struct NoticeLook {
  std::optional<Notice> notice;
  std::string remark;  // information that is not a notice, reported once; empty: none
};

class NoticeSource {
 public:
  virtual ~NoticeSource() = default;
  // For messages: "the file /run/preempted".
  virtual std::string name() const = 0;
  // Polls the source once. Blocks for a limited time, and at most until `cancel_fd` is readable. An error means that
  // the source could not be read this time.
  virtual absl::StatusOr<NoticeLook> Look(int cancel_fd) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICE_H_
