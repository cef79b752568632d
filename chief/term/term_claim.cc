#include "chief/term/term_claim.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chief/term/other_chief.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr absl::string_view kFencedPayload = "lockstep/fenced";

// Names below a staging directory.
constexpr absl::string_view kEvictedPrefix = "evicted-";
constexpr absl::string_view kAsidePrefix = "aside-";

constexpr uint64_t kMaxCopyBytes = 64u << 20;

absl::StatusOr<std::unique_ptr<StorageLock>> LockDirectory(Storage& storage, const TermOwner& owner,
                                                           IfLocked if_locked) {
  auto lock = storage.Lock(layout::kLock, LockText(owner.pid(), owner.host()));
  if (absl::IsUnimplemented(lock.status())) return std::unique_ptr<StorageLock>();  // only the term decides there
  if (!absl::IsFailedPrecondition(lock.status())) return lock;
  if (if_locked == IfLocked::kTakeOver) return std::unique_ptr<StorageLock>();
  return OtherChiefError(storage, lock.status().message());
}

// Holds the term of a job in a directory.
class DirectoryHold final : public TermHold {
 public:
  DirectoryHold(Storage& storage, TermRegistry& registry, int64_t term, std::unique_ptr<StorageLock> lock)
      : TermHold(storage, registry, term),
        storage_(storage),
        staging_(layout::StagingPath(term)),
        lock_(std::move(lock)) {}

  // Steps 3 to 5.
  absl::Status Begin();

  bool in_bucket() const override { return false; }
  absl::Status TakeFreeLock(const TermOwner& owner) override;
  absl::StatusOr<std::string> Scratch(absl::string_view hint) override;
  absl::Status EnsureDirectory(absl::string_view path) override;
  absl::StatusOr<std::string> NewCheckpoint(int64_t step, const std::set<std::string>& folders) override;
  absl::StatusOr<std::string> PlaceCheckpoint(const std::string& folder, int64_t step) override;
  absl::Status Discard(const std::string& folder) override { return storage_.RemoveTree(folder); }
  absl::Status StoreNew(absl::string_view path, absl::string_view content) override;
  absl::StatusOr<std::string> SetAside(absl::string_view path, absl::string_view why) override;
  absl::Status PutBack(absl::string_view name, absl::string_view path) override;
  absl::StatusOr<std::string> KeepCopy(absl::string_view path, absl::string_view why) override;
  absl::Status Remove(absl::string_view path) override;
  absl::Status Replace(absl::string_view path, absl::string_view content, Access access) override;

 private:
  // Steps 3 and 4 again where the staging directory is gone.
  absl::Status EnsureStaging();
  absl::Status EvictOlder();
  absl::Status Evict(const std::string& name);
  absl::Status Rescue(const std::string& evicted);
  absl::StatusOr<std::string> KeepAside(absl::string_view staged, absl::string_view label);

  Storage& storage_;
  const std::string staging_;
  std::unique_ptr<StorageLock> lock_;
  int64_t scratch_count_ = 0;
  bool staging_is_checked_ = false;  // step 4 has passed since the staging directory was created
};

}  // namespace

absl::Status FencedError(absl::string_view message) {
  absl::Status status = absl::AbortedError(message);
  status.SetPayload(kFencedPayload, absl::Cord("1"));
  return status;
}

bool IsFenced(const absl::Status& status) { return status.GetPayload(kFencedPayload).has_value(); }

absl::StatusOr<std::unique_ptr<TermHold>> TermHold::Take(Storage& storage, TermRegistry& registry,
                                                         const TermOwner& owner, IfLocked if_locked) {
  for (const char* directory : {layout::kChief, layout::kStaging, layout::kCheckpoints, layout::kMetagraphs,
                                layout::kPlans, layout::kStats, layout::kEvents, layout::kSetAside}) {
    LS_RETURN_IF_ERROR(storage.CreateDirectories(directory));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<StorageLock> lock, LockDirectory(storage, owner, if_locked));
  LS_ASSIGN_OR_RETURN(const int64_t term, registry.Claim(owner));
  auto hold = std::make_unique<DirectoryHold>(storage, registry, term, std::move(lock));
  LS_RETURN_IF_ERROR(hold->Begin());
  return hold;
}

absl::Status DirectoryHold::Begin() {
  LS_RETURN_IF_ERROR(Explain(storage_.CreateDirectoryExclusive(staging_)));
  LS_RETURN_IF_ERROR(CheckCurrent());
  staging_is_checked_ = true;
  return Explain(EvictOlder());
}

absl::Status DirectoryHold::TakeFreeLock(const TermOwner& owner) {
  if (lock_ != nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(lock_, LockDirectory(storage_, owner, IfLocked::kTakeOver));
  return absl::OkStatus();
}

absl::Status DirectoryHold::EnsureStaging() {
  LS_ASSIGN_OR_RETURN(const bool there, storage_.Exists(staging_));
  if (there && staging_is_checked_) return absl::OkStatus();
  staging_is_checked_ = false;
  LS_RETURN_IF_ERROR(CheckSamePlace());
  if (!there) {
    LS_RETURN_IF_ERROR(EnsureDirectory(layout::kStaging));
    LS_RETURN_IF_ERROR(Explain(storage_.CreateDirectoryExclusive(staging_)));
  }
  LS_RETURN_IF_ERROR(registry().Refresh());
  LS_RETURN_IF_ERROR(CheckCurrent());
  staging_is_checked_ = true;
  return absl::OkStatus();
}

absl::Status DirectoryHold::EnsureDirectory(absl::string_view path) {
  LS_ASSIGN_OR_RETURN(const bool there, storage_.Exists(path));
  if (there) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckSamePlace());
  const absl::Status made = storage_.CreateDirectoryExclusive(path);
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : Explain(made);
}

absl::Status TermHold::CheckSamePlace() const {
  LS_ASSIGN_OR_RETURN(const int64_t newest, registry_.Newest());
  if (newest >= term_) return CheckCurrent();
  return absl::NotFoundError(absl::StrCat(registry_.Describe(term_), " is gone: ", storage_.Describe(""),
                                          " is not the directory that this chief took over. Mount it again, or put it "
                                          "back"));
}

absl::Status DirectoryHold::EvictOlder() {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage_.List(layout::kStaging));
  for (const DirectoryEntry& entry : entries) {
    const int64_t other = layout::ParseTermName(entry.name).value_or(0);
    if (other >= term()) continue;
    LS_RETURN_IF_ERROR(Evict(entry.name));
  }
  return absl::OkStatus();
}

absl::Status DirectoryHold::Evict(const std::string& name) {
  const std::string evicted = JoinPath(staging_, absl::StrCat(kEvictedPrefix, name));
  LS_RETURN_IF_ERROR(storage_.Rename(JoinPath(layout::kStaging, name), evicted));
  return Rescue(evicted);
}

// Removes an evicted staging directory; those nested in it (evicted by a chief that died meanwhile) are looked through
// too.
absl::Status DirectoryHold::Rescue(const std::string& evicted) {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage_.List(evicted));
  for (const DirectoryEntry& entry : entries) {
    absl::string_view label = entry.name;
    const std::string path = JoinPath(evicted, entry.name);
    if (absl::ConsumePrefix(&label, kAsidePrefix)) LS_RETURN_IF_ERROR(KeepAside(path, label).status());
    if (absl::StartsWith(entry.name, kEvictedPrefix)) LS_RETURN_IF_ERROR(Rescue(path));
  }
  return storage_.RemoveTree(evicted);
}

absl::StatusOr<std::string> DirectoryHold::KeepAside(absl::string_view staged, absl::string_view label) {
  LS_RETURN_IF_ERROR(EnsureDirectory(layout::kSetAside));
  for (int attempt = 1;; ++attempt) {
    const std::string name = attempt == 1 ? std::string(label) : absl::StrCat(label, "-", attempt);
    const std::string to = JoinPath(layout::kSetAside, name);
    const absl::Status moved = storage_.Rename(staged, to);
    if (moved.ok()) return to;
    if (!absl::IsAlreadyExists(moved)) return Explain(moved);
  }
}

absl::StatusOr<std::string> DirectoryHold::SetAside(absl::string_view path, absl::string_view why) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  const std::string label = absl::StrCat(BaseName(path), "-", why, "-", layout::TermName(term()));
  const std::string staged = JoinPath(staging_, absl::StrCat(kAsidePrefix, label));
  LS_RETURN_IF_ERROR(Explain(storage_.Rename(path, staged)));
  return KeepAside(staged, label);
}

absl::Status DirectoryHold::PutBack(absl::string_view name, absl::string_view path) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  const std::string staged = JoinPath(staging_, absl::StrCat(kAsidePrefix, name));
  LS_RETURN_IF_ERROR(Explain(storage_.Rename(JoinPath(layout::kSetAside, name), staged)));
  const absl::Status moved = storage_.Rename(staged, path);
  if (absl::IsAlreadyExists(moved)) LS_RETURN_IF_ERROR(KeepAside(staged, name).status());
  return Explain(moved);
}

absl::StatusOr<std::string> DirectoryHold::KeepCopy(absl::string_view path, absl::string_view why) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(storage_, path, kMaxCopyBytes));
  const std::string label = absl::StrCat(BaseName(path), "-", why, "-", layout::TermName(term()));
  const std::string staged = JoinPath(staging_, absl::StrCat(kAsidePrefix, label));
  const absl::Status written = WriteNewFile(storage_, staged, content, Access::kPrivate);
  if (!written.ok()) {
    storage_.RemoveTree(staged).IgnoreError();  // else the next chief would keep the part that is there
    return Explain(written);
  }
  return KeepAside(staged, label);
}

absl::Status TermHold::CheckCurrent() const {
  LS_ASSIGN_OR_RETURN(const int64_t newest, registry_.Newest());
  if (newest <= term_) return absl::OkStatus();
  const absl::StatusOr<TermOwner> owner = registry_.OwnerOf(newest);
  const std::string who = owner.ok() ? absl::StrCat(", pid ", owner->pid(), " on host ", owner->host(), ",") : "";
  return FencedError(absl::StrCat("a newer chief", who, " claimed term ", newest, " of ", storage_.Describe(""),
                                  "; this one has term ", term_, " and ends without writing anything more"));
}

absl::Status TermHold::Explain(absl::Status error) const {
  if (error.ok() || IsFenced(error)) return error;
  absl::Status current = CheckCurrent();
  return IsFenced(current) ? current : error;
}

absl::StatusOr<std::string> DirectoryHold::Scratch(absl::string_view hint) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  return JoinPath(staging_, absl::StrCat(++scratch_count_, "-", hint));
}

absl::StatusOr<std::string> DirectoryHold::NewCheckpoint(int64_t step, const std::set<std::string>& folders) {
  LS_ASSIGN_OR_RETURN(std::string folder, Scratch(layout::StepName(step)));
  // Never with missing parents: a staging directory that a newer chief took away must not come back unchecked.
  absl::Status made = storage_.CreateDirectoryExclusive(folder);
  for (const std::string& below : folders) {
    if (made.ok()) made = storage_.CreateDirectoryExclusive(JoinPath(folder, below));
  }
  if (made.ok()) return folder;
  storage_.RemoveTree(folder).IgnoreError();
  return Explain(made);
}

absl::StatusOr<std::string> DirectoryHold::PlaceCheckpoint(const std::string& folder, int64_t step) {
  const std::string place = layout::CheckpointPath(step);
  LS_RETURN_IF_ERROR(storage_.Rename(folder, place));
  return place;
}

absl::Status DirectoryHold::StoreNew(absl::string_view path, absl::string_view content) {
  LS_RETURN_IF_ERROR(EnsureDirectory(ParentPath(path)));
  LS_ASSIGN_OR_RETURN(const std::string staged, Scratch(BaseName(path)));
  absl::Status stored = WriteNewFile(storage_, staged, content, Access::kShared);
  if (stored.ok()) stored = storage_.Rename(staged, path);
  if (stored.ok()) return stored;
  storage_.RemoveTree(staged).IgnoreError();
  return absl::IsAlreadyExists(stored) ? stored : Explain(stored);
}

absl::Status DirectoryHold::Remove(absl::string_view path) {
  LS_ASSIGN_OR_RETURN(const std::string staged, Scratch(absl::StrCat("removed-", BaseName(path))));
  LS_RETURN_IF_ERROR(Explain(storage_.Rename(path, staged)));
  return storage_.RemoveTree(staged);
}

absl::Status DirectoryHold::Replace(absl::string_view path, absl::string_view content, Access access) {
  LS_ASSIGN_OR_RETURN(const std::string scratch, Scratch(BaseName(path)));
  return Explain(ReplaceFile(storage_, scratch, path, content, access));
}

}  // namespace lockstep::chief
