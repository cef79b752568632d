// Answers what the page of a job asks for (docs/design/0024-watching.md): from the job's record, which is read while
// somebody looks, and from how the job is now.
//
// Threading: thread-safe. One caller reads the record; others wait for it kPatience at most. Present asks the chief's
// loop.
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
  // How long a caller waits for another one, who reads: a storage that hangs must not hold every thread.
  static constexpr absl::Duration kPatience = absl::Seconds(2);
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
  // How the job is, as of kAskEvery ago at most. Codes as `present` gives them.
  absl::StatusOr<PresentJob> Present();

 private:
  // The caller has the record to itself until Leave. False: another one has it for too long.
  bool Enter();
  void Leave();
  void Refresh();
  // What is not of api/job. nullopt: there is no such thing.
  std::optional<std::string> Compose(absl::string_view path, const HttpRequest& request);
  std::string LogLines(const HttpRequest& request) const;

  const Options options_;
  SteadyClock clock_;
  Mutex mutex_;
  CondVar left_;
  bool taken_ GUARDED_BY(mutex_) = false;  // somebody has what follows
  JobRecord record_;
  ChiefLogReader log_reader_;
  std::deque<ChiefLogLine> log_;  // the newest
  std::string trouble_;           // what the storage refused last
  absl::Time next_read_ = absl::InfinitePast();

  Mutex present_mutex_;
  absl::Time next_ask_ GUARDED_BY(present_mutex_) = absl::InfinitePast();
  std::optional<absl::StatusOr<PresentJob>> present_ GUARDED_BY(present_mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_PAGE_API_H_
