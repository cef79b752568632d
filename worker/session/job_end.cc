#include "worker/session/job_end.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/job_place/job_place.h"
#include "common/status/exit_code.h"
#include "common/storage/files.h"
#include "protos/stats.pb.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kMaxStatsBytes = uint64_t{64} << 20;
constexpr absl::Duration kPatience = absl::Seconds(10);

}  // namespace

std::optional<JobEnd> FindJobEnd(const std::string& chief_file) {
  absl::string_view directory = chief_file;
  if (!absl::ConsumeSuffix(&directory, layout::kAddress)) return std::nullopt;
  if (directory.empty()) directory = "./";
  if (directory.back() != '/') return std::nullopt;
  const absl::StatusOr<std::unique_ptr<JobPlace>> place = JobPlace::Open(std::string(directory), kPatience);
  if (!place.ok()) return std::nullopt;
  const absl::StatusOr<std::string> json = ReadWholeFile((*place)->storage(), layout::kLiveStats, kMaxStatsBytes);
  WorkerStatsFile stats;
  if (!json.ok() || !FromJson(*json, layout::kLiveStats, &stats).ok()) return std::nullopt;
  const JobStats& job = stats.job();
  if (job.ended().empty() || job.exit_code() != kExitDone || !job.completed()) return std::nullopt;
  return JobEnd{static_cast<Term>(stats.term()), job.ended()};
}

}  // namespace lockstep::worker
