// Preemption notices of the three large clouds, from their metadata servers:
//
//   aws    the interruption of a spot instance, two minutes ahead, read with a token (IMDSv2). A rebalance
//          recommendation is only a remark: the instance may live on.
//   gcp    `preempted`, about 30 s before the end
//   azure  scheduled events that end this virtual machine: Preempt (30 s ahead), Terminate, Reboot, Redeploy. The list
//          also has events of other machines in the set. An event that is far away is only a remark at first.
//
// Threading: the functions are thread-safe; a NoticeSource is used by one thread.
#ifndef LOCKSTEP_WORKER_NOTICE_CLOUDS_H_
#define LOCKSTEP_WORKER_NOTICE_CLOUDS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/notice/http.h"
#include "worker/notice/notice.h"

namespace lockstep::worker {

enum class Cloud : uint8_t { kNone, kAws, kGcp, kAzure };

// "aws", "gcp", "azure", "none".
const char* CloudName(Cloud cloud);

// Detects the cloud from the machine's firmware (DMI), without network requests. `dmi`: the kernel's folder with the
// DMI data. kNone when it names no known cloud.
Cloud DetectCloud(const std::string& dmi = "/sys/class/dmi/id");

// The metadata server of all three clouds.
inline constexpr char kMetadataEndpoint[] = "http://169.254.169.254";

// The polling interval: a fraction of the time between notice and end.
absl::Duration LookEvery(Cloud cloud);

struct CloudLimits {
  absl::Duration reply = absl::Seconds(2);
  // Azure's first request enables scheduled events for the machine and may take two minutes.
  absl::Duration first_events = absl::Seconds(130);
};

// Azure events further away than this are only remarks, since a worker that left early would idle until then.
inline constexpr absl::Duration kActWithin = absl::Minutes(5);
// The grace period when the end may come at any moment.
inline constexpr absl::Duration kLeastGrace = absl::Seconds(1);

// REQUIRES: `cloud` is not kNone.
std::unique_ptr<NoticeSource> MakeCloudSource(Cloud cloud, const HttpEndpoint& endpoint,
                                              const CloudLimits& limits = {});

// Parse the servers' answers. `now`: the time on the server's clock, if it sends it. DataLoss: malformed.
absl::StatusOr<Notice> ReadAwsAction(absl::string_view json, absl::Time now);
absl::StatusOr<NoticeLook> ReadGcpPreempted(absl::string_view text);
absl::StatusOr<NoticeLook> ReadAzureEvents(absl::string_view json, const std::string& machine, absl::Time now);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_CLOUDS_H_
