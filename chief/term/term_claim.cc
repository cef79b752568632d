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

}  // namespace

absl::Status FencedError(absl::string_view message) {
  absl::Status status = absl::AbortedError(message);
  status.SetPayload(kFencedPayload, absl::Cord("1"));
  return status;
}

bool IsFenced(const absl::Status& status) { return status.GetPayload(kFencedPayload).has_value(); }

TermHold::TermHold(Storage& storage, TermRegistry& registry, int64_t term, std::unique_ptr<StorageLock> lock)
    : storage_(storage),
      registry_(registry),
      term_(term),
      staging_(layout::StagingPath(term)),
      lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<TermHold>> TermHold::Take(Storage& storage, TermRegistry& registry,
                                                         const TermOwner& owner, IfLocked if_locked) {
  for (const char* directory : {layout::kChief, layout::kStaging, layout::kCheckpoints, layout::kMetagraphs,
                                layout::kPlans, layout::kStats, layout::kEvents, layout::kSetAside}) {
    LS_RETURN_IF_ERROR(storage.CreateDirectories(directory));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<StorageLock> lock, LockDirectory(storage, owner, if_locked));
  int64_t term = 0;
  absl::Status staged;
  do {
    LS_ASSIGN_OR_RETURN(term, registry.Claim(owner));
    staged = storage.CreateDirectoryExclusive(layout::StagingPath(term));
    // Another chief has this term, and its claim cannot be read any more: the next one is free.
  } while (absl::IsAlreadyExists(staged));
  std::unique_ptr<TermHold> hold(new TermHold(storage, registry, term, std::move(lock)));
  LS_RETURN_IF_ERROR(hold->Explain(staged));
  LS_RETURN_IF_ERROR(hold->CheckCurrent());
  hold->staging_is_checked_ = true;
  LS_RETURN_IF_ERROR(hold->Explain(hold->EvictOlder()));
  return hold;
}

absl::Status TermHold::TakeFreeLock(const TermOwner& owner) {
  if (lock_ != nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(lock_, LockDirectory(storage_, owner, IfLocked::kTakeOver));
  return absl::OkStatus();
}

absl::Status TermHold::EnsureStaging() {
  LS_ASSIGN_OR_RETURN(const bool there, storage_.Exists(staging_));
  if (there && staging_is_checked_) return absl::OkStatus();
  staging_is_checked_ = false;
  LS_RETURN_IF_ERROR(CheckSamePlace());
  if (!there) {
    LS_RETURN_IF_ERROR(EnsureDirectory(layout::kStaging));
    LS_RETURN_IF_ERROR(Explain(storage_.CreateDirectoryExclusive(staging_)));
  }
  LS_RETURN_IF_ERROR(registry_.Refresh());
  LS_RETURN_IF_ERROR(CheckCurrent());
  staging_is_checked_ = true;
  return absl::OkStatus();
}

absl::Status TermHold::EnsureDirectory(absl::string_view path) {
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

absl::Status TermHold::EvictOlder() {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage_.List(layout::kStaging));
  for (const DirectoryEntry& entry : entries) {
    const int64_t other = layout::ParseTermName(entry.name).value_or(0);
    if (other >= term_) continue;
    LS_RETURN_IF_ERROR(Evict(entry.name));
  }
  return absl::OkStatus();
}

absl::Status TermHold::Evict(const std::string& name) {
  const std::string evicted = JoinPath(staging_, absl::StrCat(kEvictedPrefix, name));
  LS_RETURN_IF_ERROR(storage_.Rename(JoinPath(layout::kStaging, name), evicted));
  return Rescue(evicted);
}

// Removes an evicted staging directory; those nested in it (evicted by a chief that died meanwhile) are looked through
// too.
absl::Status TermHold::Rescue(const std::string& evicted) {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage_.List(evicted));
  for (const DirectoryEntry& entry : entries) {
    absl::string_view label = entry.name;
    const std::string path = JoinPath(evicted, entry.name);
    if (absl::ConsumePrefix(&label, kAsidePrefix)) LS_RETURN_IF_ERROR(KeepAside(path, label).status());
    if (absl::StartsWith(entry.name, kEvictedPrefix)) LS_RETURN_IF_ERROR(Rescue(path));
  }
  return storage_.RemoveTree(evicted);
}

absl::StatusOr<std::string> TermHold::KeepAside(absl::string_view staged, absl::string_view label) {
  LS_RETURN_IF_ERROR(EnsureDirectory(layout::kSetAside));
  for (int attempt = 1;; ++attempt) {
    const std::string name = attempt == 1 ? std::string(label) : absl::StrCat(label, "-", attempt);
    const std::string to = JoinPath(layout::kSetAside, name);
    const absl::Status moved = storage_.Rename(staged, to);
    if (moved.ok()) return to;
    if (!absl::IsAlreadyExists(moved)) return Explain(moved);
  }
}

absl::StatusOr<std::string> TermHold::SetAside(absl::string_view path, absl::string_view why) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  const std::string label = absl::StrCat(BaseName(path), "-", why, "-", layout::TermName(term_));
  const std::string staged = JoinPath(staging_, absl::StrCat(kAsidePrefix, label));
  LS_RETURN_IF_ERROR(Explain(storage_.Rename(path, staged)));
  return KeepAside(staged, label);
}

absl::Status TermHold::PutBack(absl::string_view name, absl::string_view path) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  const std::string staged = JoinPath(staging_, absl::StrCat(kAsidePrefix, name));
  LS_RETURN_IF_ERROR(Explain(storage_.Rename(JoinPath(layout::kSetAside, name), staged)));
  const absl::Status moved = storage_.Rename(staged, path);
  if (absl::IsAlreadyExists(moved)) LS_RETURN_IF_ERROR(KeepAside(staged, name).status());
  return Explain(moved);
}

absl::StatusOr<std::string> TermHold::KeepCopy(absl::string_view path, absl::string_view why) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(storage_, path, kMaxCopyBytes));
  const std::string label = absl::StrCat(BaseName(path), "-", why, "-", layout::TermName(term_));
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

absl::StatusOr<std::string> TermHold::Scratch(absl::string_view hint) {
  LS_RETURN_IF_ERROR(EnsureStaging());
  return JoinPath(staging_, absl::StrCat(++scratch_count_, "-", hint));
}

absl::Status TermHold::Remove(absl::string_view path) {
  LS_ASSIGN_OR_RETURN(const std::string staged, Scratch(absl::StrCat("removed-", BaseName(path))));
  LS_RETURN_IF_ERROR(Explain(storage_.Rename(path, staged)));
  return storage_.RemoveTree(staged);
}

absl::Status TermHold::Replace(absl::string_view path, absl::string_view content, Access access) {
  LS_ASSIGN_OR_RETURN(const std::string scratch, Scratch(BaseName(path)));
  return Explain(ReplaceFile(storage_, scratch, path, content, access));
}

}  // namespace lockstep::chief
