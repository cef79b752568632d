// The chief's page, health and metrics over HTTP, where `observe.http` says. A page that cannot be served costs a
// warning: training goes on without it.
//
// Threading: thread-compatible; its parts answer on threads of their own.
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
  // How long the loop may stand before /healthz says so.
  static constexpr absl::Duration kHealthy = absl::Seconds(5);

  struct Options {
    std::string http;           // `observe.http`
    std::string directory;      // of the job
    JobStore* store = nullptr;  // outlives the page
    ChiefLoop* loop = nullptr;  // outlives the page
  };

  // Serves, and says where in the log and in the job's directory. Null: `http` is off, or it could not be served, which
  // is logged.
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
