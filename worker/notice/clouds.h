// The notices of the three large clouds, from their metadata servers:
//
//   aws    a spot instance's interruption, two minutes before it; a token is asked for first (IMDSv2). A rebalance
//          recommendation is a remark: the instance may live on.
//   gcp    `preempted`, about 30 s before the end
//   azure  scheduled events that end this virtual machine: Preempt (30 s before), Terminate, Reboot, Redeploy. Those of
//          other machines of its set are in the list too, and some are days away: such a one is a remark at first.
//
// Threading: the functions are pure; a source is as NoticeSource says.
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

// The cloud that this machine says it is of, in what its firmware tells (DMI): no request leaves the machine. `dmi` is
// the folder of the kernel that holds it. kNone where it says nothing.
Cloud DetectCloud(const std::string& dmi = "/sys/class/dmi/id");

// Where the metadata server of every cloud here listens.
inline constexpr char kMetadataEndpoint[] = "http://169.254.169.254";

// How often to look: a part of the time that is left between the notice and the end.
absl::Duration LookEvery(Cloud cloud);

struct CloudLimits {
  absl::Duration reply = absl::Seconds(2);
  // The first request switches Azure's events on for the machine, and may take two minutes.
  absl::Duration first_events = absl::Seconds(130);
};

// Events of Azure further away than this are a remark only: a worker that left for one would stand idle until then.
inline constexpr absl::Duration kActWithin = absl::Minutes(5);
// What is left where the end may come at any moment.
inline constexpr absl::Duration kLeastGrace = absl::Seconds(1);

// REQUIRES: a cloud that is not kNone.
std::unique_ptr<NoticeSource> MakeCloudSource(Cloud cloud, const HttpEndpoint& endpoint,
                                              const CloudLimits& limits = {});

// What the servers answer, read. `now` is the server's own clock, where it tells it. DataLoss: it is not what was
// expected.
absl::StatusOr<Notice> ReadAwsAction(absl::string_view json, absl::Time now);
absl::StatusOr<NoticeLook> ReadGcpPreempted(absl::string_view text);
absl::StatusOr<NoticeLook> ReadAzureEvents(absl::string_view json, const std::string& machine, absl::Time now);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_CLOUDS_H_
