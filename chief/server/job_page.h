// Serves the chief's page, health and metrics over HTTP, at the address `observe.http`. If it cannot be served, a
// warning is logged and training goes on without it.
//
// Threading: thread-compatible; requests are answered on threads of its own.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_PAGE_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_PAGE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/server/chief_loop.h"
#include "chief/server/job_store.h"
#include "chief/watch/page_api.h"
#include "chief/watch/page_server.h"
#include "common/job_place/job_place.h"

namespace lockstep::chief {

class JobPage {
 public:
  // How long the loop may hang before /healthz reports it.
  static constexpr absl::Duration kHealthy = absl::Seconds(5);

  struct Options {
    std::string http;           // `observe.http`
    std::string directory;      // of the job
    JobStore* store = nullptr;  // outlives the page
    ChiefLoop* loop = nullptr;  // outlives the page
  };

  // Starts to serve, and publishes the URL in the log and in the job's directory. Returns null if `http` is off or
  // cannot be served, which is logged.
  static std::unique_ptr<JobPage> Start(const Options& options);

 private:
  JobPage() = default;
  absl::Status Serve(const Options& options);

  std::unique_ptr<JobPlace> place_;
  std::unique_ptr<PageApi> api_;
  std::unique_ptr<PageServer> server_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_PAGE_H_
