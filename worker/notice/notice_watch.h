// A thread that polls a source of notices until it gives one. A failure of the source is reported once and polling
// continues; it never disturbs training.
//
// Threading: owned by its creator. Its own thread calls `on_notice` and `say` until the destructor returns.
#ifndef LOCKSTEP_WORKER_NOTICE_NOTICE_WATCH_H_
#define LOCKSTEP_WORKER_NOTICE_NOTICE_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "worker/notice/notice.h"

namespace lockstep::worker {

class NoticeWatch {
 public:
  struct Options {
    std::unique_ptr<NoticeSource> source;
    absl::Duration every;
    std::function<void(const Notice& notice)> on_notice;  // once
    std::function<void(const std::string& line)> say;
  };

  explicit NoticeWatch(Options options);
  // Cancels a poll in progress.
  ~NoticeWatch();
  NoticeWatch(const NoticeWatch&) = delete;
  NoticeWatch& operator=(const NoticeWatch&) = delete;

 private:
  void Run();
  // True when the source gave a notice.
  bool LookOnce();

  const Options options_;
  const int cancel_fd_;
  bool failed_ = false;         // the source has failed, which was reported
  bool recovery_said_ = false;  // reported once only, so that a flapping server does not fill the log
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICE_WATCH_H_
