#include "worker/session/job_end.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/status/exit_code.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "protos/stats.pb.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kMaxStatsBytes = uint64_t{64} << 20;

}  // namespace

std::optional<JobEnd> FindJobEnd(const std::string& chief_file) {
  absl::string_view directory = chief_file;
  if (!absl::ConsumeSuffix(&directory, layout::kAddress)) return std::nullopt;
  if (directory.empty()) directory = "./";
  if (directory.back() != '/') return std::nullopt;
  const absl::StatusOr<std::unique_ptr<LocalStorage>> storage = LocalStorage::Open(std::string(directory));
  if (!storage.ok()) return std::nullopt;
  const absl::StatusOr<std::string> json = ReadWholeFile(**storage, layout::kLiveStats, kMaxStatsBytes);
  WorkerStatsFile stats;
  if (!json.ok() || !FromJson(*json, layout::kLiveStats, &stats).ok()) return std::nullopt;
  const JobStats& job = stats.job();
  if (job.ended().empty() || job.exit_code() != kExitDone || !job.completed()) return std::nullopt;
  return JobEnd{static_cast<Term>(stats.term()), job.ended()};
}

}  // namespace lockstep::worker
