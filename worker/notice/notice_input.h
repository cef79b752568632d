// Takes the end of file on standard input as the notice: the process at the other end is gone. For workers started by
// ssh, since a broken ssh connection sends no signal.
//
// Threading: thread-compatible; used by one thread.
#ifndef LOCKSTEP_WORKER_NOTICE_NOTICE_INPUT_H_
#define LOCKSTEP_WORKER_NOTICE_NOTICE_INPUT_H_

#include <string>

#include "worker/notice/notice.h"

namespace lockstep::worker {

class NoticeInput : public NoticeSource {
 public:
  // Reads and discards the data of `fd`, which the caller keeps owning.
  explicit NoticeInput(int fd) : fd_(fd) {}
  std::string name() const override { return "the standard input"; }
  absl::StatusOr<NoticeLook> Look(int cancel_fd) override;

 private:
  const int fd_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICE_INPUT_H_
