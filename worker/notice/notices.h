// Sets up the sources of notices that a worker's command line asks for.
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
  std::string cloud = "none";  // aws, gcp, azure, none, or auto: detected from the firmware
  std::string endpoint;        // of the metadata server; empty: kMetadataEndpoint
  std::string file;            // empty: none
  bool input = false;          // take the end of standard input as a notice
};

// The parsed options. PlanNotices returns InvalidArgument for a wrong option.
struct NoticePlan {
  Cloud cloud = Cloud::kNone;
  HttpEndpoint endpoint;
  std::string file;
  bool input = false;
};
absl::StatusOr<NoticePlan> PlanNotices(const NoticeOptions& options, const std::string& dmi = "/sys/class/dmi/id");

// Starts the watches, which run until destroyed. Each calls `on_notice` at most once, on its own thread.
std::vector<std::unique_ptr<NoticeWatch>> WatchNotices(const NoticePlan& plan,
                                                       const std::function<void(const Notice&)>& on_notice);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_NOTICES_H_
