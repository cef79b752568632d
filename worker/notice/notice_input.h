// End of file on standard input is the notice: the process at the other end has gone. For workers that ssh started,
// since a broken ssh connection sends no signal.
//
// Threading: as NoticeSource.
#ifndef LOCKSTEP_WORKER_NOTICE_NOTICE_INPUT_H_
#define LOCKSTEP_WORKER_NOTICE_NOTICE_INPUT_H_

#include <string>

#include "worker/notice/notice.h"

namespace lockstep::worker {

class NoticeInput : public NoticeSource {
 public:
  // What comes on `fd` is read and dropped. The descriptor stays its owner's.
  explicit NoticeInput(int fd) : fd_(fd) {}
  std::string name() const override { return "the standard input"; }
  absl::StatusOr<NoticeLook> Look(int cancel_fd) override;

 private:
  const int fd_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICE_INPUT_H_
