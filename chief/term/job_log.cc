#include "chief/term/job_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/random_secret.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr int kAttempts = 4;  // at one change, each on top of an earlier one that had gone through unknown

std::string RandomName() {
  const absl::StatusOr<std::string> name = RandomSecretHex(8);
  LS_CHECK(name.ok(), "the system gives random bytes");
  return *name;
}

}  // namespace

std::unique_ptr<JobLog> JobLog::Of(const JobPlace& place) {
  if (place.bucket() == nullptr) return std::make_unique<JobLog>(place.storage());
  return std::make_unique<JobLog>(place.bucket()->objects());
}

JobLog::JobLog(Storage& storage)
    : job_place_(storage.Describe("")),
      log_place_(storage.Describe(layout::kLog)),
      storage_(&storage),
      storage_slots_(std::make_unique<StorageSlots>(&storage, layout::kLog, RandomName)),
      slots_(*storage_slots_) {}

JobLog::JobLog(ObjectStore& objects)
    : job_place_(objects.Describe("")),
      log_place_(objects.Describe(layout::kLog)),
      storage_(nullptr),
      object_slots_(std::make_unique<ObjectSlots>(&objects, layout::kLog)),
      slots_(*object_slots_) {}

absl::StatusOr<std::optional<CommitRecord>> JobLog::Read() {
  MutexLock lock(&mutex_);
  return ReadLocked();
}

absl::StatusOr<std::optional<CommitRecord>> JobLog::ReadLocked() {
  damage_.clear();
  newer_.reset();
  log_.emplace(&slots_, RandomName);
  const absl::StatusOr<CommitRecord> record = log_->Read(damage_);
  if (absl::IsNotFound(record.status())) return std::optional<CommitRecord>();
  LS_RETURN_IF_ERROR(record.status());
  return std::optional<CommitRecord>(*record);
}

std::vector<std::string> JobLog::damage() const {
  MutexLock lock(&mutex_);
  return damage_;
}

CommitRecord JobLog::head() const {
  MutexLock lock(&mutex_);
  return log_.has_value() && log_->head().has_value() ? *log_->head() : CommitRecord();
}

absl::Status JobLog::Change(absl::string_view what, const std::function<void(CommitRecord&)>& change) {
  MutexLock lock(&mutex_);
  LS_CHECK(log_.has_value(), "the log is read before it is changed");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    CommitRecord next = log_->head().value_or(CommitRecord());
    next.set_change(std::string(what));
    change(next);
    LS_ASSIGN_OR_RETURN(const Appended appended, log_->Append(std::move(next)));
    if (appended == Appended::kDone) return absl::OkStatus();
    if (appended == Appended::kFenced) {
      return FencedError(
          absl::StrCat("another chief took ", job_place_, " over; this one ends without writing anything more"));
    }
  }
  return absl::UnavailableError(absl::StrCat("the record of '", what, "' in ", log_place_, " was not written"));
}

absl::StatusOr<int64_t> JobLog::NewestTerm() {
  MutexLock lock(&mutex_);
  if (!log_.has_value()) LS_RETURN_IF_ERROR(ReadLocked().status());
  absl::StatusOr<std::optional<CommitRecord>> newer = log_->Newer();
  if (absl::IsNotFound(newer.status())) return 0;
  LS_RETURN_IF_ERROR(newer.status());
  if (newer->has_value()) newer_ = **std::move(newer);
  if (newer_.has_value()) return newer_->term();
  return log_->head().has_value() ? log_->head()->term() : 0;
}

LogOwner JobLog::owner() const {
  MutexLock lock(&mutex_);
  if (newer_.has_value()) return newer_->owner();
  return log_.has_value() && log_->head().has_value() ? log_->head()->owner() : LogOwner();
}

absl::Status JobLog::Sweep() {
  MutexLock lock(&mutex_);
  return storage_slots_ == nullptr ? absl::OkStatus() : storage_slots_->SweepLeftovers();
}

std::string JobLog::Describe() const { return log_place_; }

absl::Status JobLog::Refresh() {
  if (storage_ == nullptr) return absl::OkStatus();
  const std::string change = absl::StrCat(layout::kLog, "/tmp-look-", RandomName());
  LS_RETURN_IF_ERROR(storage_->CreateDirectoryExclusive(change));
  return storage_->RemoveTree(change);
}

}  // namespace lockstep::chief
