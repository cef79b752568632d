#include "chief/server/open_saves.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {

class OpenSaves::Save {
 public:
  explicit Save(uint32_t the_shares) : shares(the_shares) {}

  const uint32_t shares;
  Mutex mutex;
  bool abandoned GUARDED_BY(mutex) = false;
  std::shared_ptr<ShardSink> sink GUARDED_BY(mutex);
};

void OpenSaves::Open(const SnapshotId& id, uint32_t shares) {
  MutexLock lock(&mutex_);
  saves_[id] = std::make_shared<Save>(shares);
}

std::shared_ptr<OpenSaves::Save> OpenSaves::Close(const SnapshotId& id) {
  MutexLock lock(&mutex_);
  const auto found = saves_.find(id);
  if (found == saves_.end()) return nullptr;
  std::shared_ptr<Save> save = std::move(found->second);
  saves_.erase(found);
  return save;
}

void OpenSaves::Abandon(const std::shared_ptr<Save>& save) {
  if (save == nullptr) return;
  MutexLock lock(&save->mutex);
  save->abandoned = true;
  if (save->sink != nullptr) save->sink->Abandon().IgnoreError();
}

std::shared_ptr<OpenSaves::Save> OpenSaves::Find(const SnapshotId& id) {
  MutexLock lock(&mutex_);
  const auto found = saves_.find(id);
  return found == saves_.end() ? nullptr : found->second;
}

absl::StatusOr<std::shared_ptr<ShardSink>> OpenSaves::Sink(const SnapshotId& id) { return Sink(id, Find(id)); }

absl::StatusOr<std::shared_ptr<ShardSink>> OpenSaves::Sink(const SnapshotId& id, const std::shared_ptr<Save>& save) {
  const absl::Status not_open = absl::FailedPreconditionError(absl::StrCat("no save of ", id.ToString(), " is open"));
  if (save == nullptr) return not_open;
  MutexLock lock(&save->mutex);
  if (save->abandoned) return not_open;
  if (save->sink == nullptr) {
    LS_ASSIGN_OR_RETURN(save->sink, make_sink_(id, save->shares));
  }
  return save->sink;
}

}  // namespace lockstep::chief
