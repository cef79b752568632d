// The sources of notices that a worker's command line asks for.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_NOTICE_NOTICES_H_
#define LOCKSTEP_WORKER_NOTICE_NOTICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/notice/clouds.h"
#include "worker/notice/http.h"
#include "worker/notice/notice.h"
#include "worker/notice/notice_watch.h"

namespace lockstep::worker {

struct NoticeOptions {
  std::string cloud = "none";  // aws, gcp, azure, none, or auto: as the machine's firmware says
  std::string endpoint;        // of the metadata server; empty: where clouds have it
  std::string file;            // empty: none
  bool input = false;          // the end of the standard input
};

// What they come to. InvalidArgument: an option is wrong.
struct NoticePlan {
  Cloud cloud = Cloud::kNone;
  HttpEndpoint endpoint;
  std::string file;
  bool input = false;
};
absl::StatusOr<NoticePlan> PlanNotices(const NoticeOptions& options, const std::string& dmi = "/sys/class/dmi/id");

// Watches until the vector is dropped. `on_notice` is called at most once by each watch, on its thread.
std::vector<std::unique_ptr<NoticeWatch>> WatchNotices(const NoticePlan& plan,
                                                       const std::function<void(const Notice&)>& on_notice);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICES_H_
