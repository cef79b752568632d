// Answers what the page of a job asks for (docs/design/0024-watching.md): from the job's record, which is read while
// somebody looks, and from how the job is now.
//
// Threading: thread-safe; Answer blocks on the storage and on the chief's loop.
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
  // The record is read at most this often, and how the job is asked for.
  static constexpr absl::Duration kReadDirectoryEvery = absl::Seconds(1);
  static constexpr absl::Duration kReadBucketEvery = absl::Seconds(10);
  static constexpr absl::Duration kAskEvery = absl::Milliseconds(500);
  static constexpr size_t kMostLogLines = 5000;

  struct Options {
    std::string directory;  // as people name it
    const JobPlace* place = nullptr;
    std::function<absl::StatusOr<PresentJob>()> present;
  };

  explicit PageApi(Options options) : options_(std::move(options)), record_(options_.place) {}

  // The answer to a path behind "/api/". 404: there is no such path or series. 503, with the reason: neither chief nor
  // directory tells how the job is.
  HttpResponse Answer(absl::string_view path, const HttpRequest& request);

 private:
  void Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PresentJob> Present() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<std::string> Compose(absl::string_view path, const HttpRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string LogLines(const HttpRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  SteadyClock clock_;
  Mutex mutex_;
  JobRecord record_ GUARDED_BY(mutex_);
  ChiefLogReader log_reader_ GUARDED_BY(mutex_);
  std::deque<ChiefLogLine> log_ GUARDED_BY(mutex_);  // the newest
  std::string trouble_ GUARDED_BY(mutex_);           // what the storage refused last
  absl::Time next_read_ GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_ask_ GUARDED_BY(mutex_) = absl::InfinitePast();
  std::optional<absl::StatusOr<PresentJob>> present_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_PAGE_API_H_
