// JobStore: what hooks of the job leave in its directory.
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/server/job_store.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr size_t kMostHookOutputs = 1000;
constexpr size_t kMostTraces = 256;

}  // namespace

absl::Status JobStore::WriteOfStep(const char* folder, const std::string& file, const std::string& bytes, size_t most) {
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(hold_->EnsureDirectory(folder));
  LS_RETURN_IF_ERROR(hold_->Replace(absl::StrCat(folder, "/", file), bytes));
  return step_files_.try_emplace(folder, *storage_, folder, most).first->second.Written();
}

absl::Status JobStore::WriteHookOutput(const std::string& name, const std::string& text) {
  {
    MutexLock lock(&mutex_);
    LS_RETURN_IF_ERROR(hold_->EnsureDirectory(layout::kLogs));
  }
  return WriteOfStep(layout::kHookLogs, absl::StrCat(name, ".txt"), text, kMostHookOutputs);
}

absl::Status JobStore::WriteTrace(const std::string& file, const std::string& bytes) {
  return WriteOfStep(layout::kProfiles, file, bytes, kMostTraces);
}

}  // namespace lockstep::chief
