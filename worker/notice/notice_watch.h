// A thread that looks at a source of notices again and again, until it gives one. A source that fails is reported once
// and polled on: it never keeps the worker from training.
//
// Threading: `on_notice` and `say` are called by the watch's thread, until the destructor returns.
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
  // Ends a look that is under way.
  ~NoticeWatch();
  NoticeWatch(const NoticeWatch&) = delete;
  NoticeWatch& operator=(const NoticeWatch&) = delete;

 private:
  void Run();
  // True when the source gave a notice.
  bool LookOnce();

  const Options options_;
  const int cancel_fd_;
  bool failed_ = false;         // ever, and that was said
  bool recovery_said_ = false;  // once: a server that comes and goes fills no log
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICE_WATCH_H_
