// A file whose existence is the notice. It may contain the remaining time, such as "90s".
//
// Threading: thread-compatible; used by one thread.
#ifndef LOCKSTEP_WORKER_NOTICE_NOTICE_FILE_H_
#define LOCKSTEP_WORKER_NOTICE_NOTICE_FILE_H_

#include <string>
#include <utility>

#include "worker/notice/notice.h"

namespace lockstep::worker {

class NoticeFile : public NoticeSource {
 public:
  explicit NoticeFile(std::string path) : path_(std::move(path)) {}
  std::string name() const override { return "the file " + path_; }
  absl::StatusOr<NoticeLook> Look(int cancel_fd) override;

 private:
  const std::string path_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICE_FILE_H_
