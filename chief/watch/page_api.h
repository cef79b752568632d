// Answers requests of a job's page (docs/design/0024-watching.md): from the job's record, which is read on demand, and
// from the job's present state.
//
// Threading: thread-safe; Answer and Present block. One caller at a time reads the record; others wait for it, at most
// kPatience.
#ifndef LOCKSTEP_CHIEF_WATCH_PAGE_API_H_
#define LOCKSTEP_CHIEF_WATCH_PAGE_API_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/logs/chief_logs.h"
#include "chief/watch/job_record.h"
#include "chief/watch/present_job.h"
#include "common/clock/clock.h"
#include "common/http/http_message.h"
#include "common/job_place/job_place.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class PageApi {
 public:
  // The shortest intervals between two reads of the record, and between two calls of `present`.
  static constexpr absl::Duration kReadDirectoryEvery = absl::Seconds(1);
  static constexpr absl::Duration kReadBucketEvery = absl::Seconds(10);
  static constexpr absl::Duration kAskEvery = absl::Milliseconds(500);
  // How long a caller waits for another one that reads: a storage that hangs must not block every thread.
  static constexpr absl::Duration kPatience = absl::Seconds(2);
  static constexpr size_t kMostLogLines = 5000;

  struct Options {
    std::string directory;  // as shown to people
    const JobPlace* place = nullptr;
    std::function<absl::StatusOr<PresentJob>()> present;
  };

  explicit PageApi(Options options) : options_(std::move(options)), record_(options_.place) {}

  // The answer to a path behind "/api/". 404: there is no such path or series. 503, with the reason: neither the chief
  // nor the directory shows the state of the job.
  HttpResponse Answer(absl::string_view path, const HttpRequest& request);
  // The state of the job, at most kAskEvery old. Codes as `present`.
  absl::StatusOr<PresentJob> Present();

 private:
  // Gives the caller exclusive use of the record until Leave. Returns false if another caller has it for too long.
  bool Enter();
  void Leave();
  void Refresh();
  // The answers other than api/job; nullopt: there is no such path.
  std::optional<std::string> Compose(absl::string_view path, const HttpRequest& request);
  std::string LogLines(const HttpRequest& request) const;

  const Options options_;
  SteadyClock clock_;
  Mutex mutex_;
  CondVar left_;
  bool taken_ GUARDED_BY(mutex_) = false;  // a caller owns the members up to next_read_
  JobRecord record_;
  ChiefLogReader log_reader_;
  std::deque<ChiefLogLine> log_;  // the newest
  std::string trouble_;           // the last error of the storage
  absl::Time next_read_ = absl::InfinitePast();

  Mutex present_mutex_;
  absl::Time next_ask_ GUARDED_BY(present_mutex_) = absl::InfinitePast();
  std::optional<absl::StatusOr<PresentJob>> present_ GUARDED_BY(present_mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_PAGE_API_H_
