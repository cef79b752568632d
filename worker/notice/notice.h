// What tells a worker that its machine is about to be taken away, besides SIGTERM.
//
// Threading: thread-compatible; one thread looks at a source.
#ifndef LOCKSTEP_WORKER_NOTICE_NOTICE_H_
#define LOCKSTEP_WORKER_NOTICE_NOTICE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep::worker {

struct Notice {
  std::string what;                             // for people
  absl::Duration grace = absl::ZeroDuration();  // until the machine is gone; zero: not known
};

struct NoticeLook {
  std::optional<Notice> notice;
  std::string remark;  // what people should know all the same, once; empty: nothing
};

class NoticeSource {
 public:
  virtual ~NoticeSource() = default;
  // For messages: "the file /run/preempted".
  virtual std::string name() const = 0;
  // Looks once. Blocks, for a limited time and no longer than until `cancel_fd` is readable. An error means that
  // nothing is known, and that it may be known at the next look.
  virtual absl::StatusOr<NoticeLook> Look(int cancel_fd) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICE_H_
