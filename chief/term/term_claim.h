// Rule 13: how a chief takes over a job's directory, and how it notices that another took it from it.
//
//   1 lock       another chief of this machine alive → FailedPrecondition with its pid and host
//   2 claim      the next term, by exclusive create
//   3 stage      staging/<term>/ created, here and nowhere else
//   4 recheck    a newer term exists by now → fenced. Either this chief sees the newer one, or the newer one sees this
//                staging directory in step 5; so no chief can publish after a newer one finished its claim.
//   5 evict      every older staging directory is renamed into ours, then removed (but for what it was
//                setting aside, which goes to its place): a paused older chief can still write
//                into files it holds open, but every name it would publish from is gone
//   6 recover    Recovery scans (chief/checkpoint/recovery.h) and stores the manifests that this term accepts
//
// Everything the chief writes goes to staging/<term>/ first and is published by one rename, so a fenced chief cannot
// publish anything, not even its address.
//
// A staging directory that is gone was taken by a newer chief, or somebody removed it by hand. Steps 3 and 4 are done
// again then, under the same term. That is as safe as at the claim: a chief that claimed before the recheck is seen by
// it, and this one is fenced; one that claims later finds the new directory in its step 5. Nothing is staged before a
// recheck has passed, also when one failed in between. Where chief/term-<n>/ is gone as well, the storage was unmounted
// or all of it was removed: nothing is made there.
// Threading: thread-compatible; every call blocks.
#ifndef LOCKSTEP_CHIEF_TERM_TERM_CLAIM_H_
#define LOCKSTEP_CHIEF_TERM_TERM_CLAIM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/term/term_registry.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// What to do while another chief of this machine holds the directory's lock. The lock spares a user who starts a second
// one by mistake a surprise; the term decides.
enum class IfLocked {
  kRefuse,
  kTakeOver,  // that chief is known to do nothing
};

class TermHold {
 public:
  // Takes the directory over (steps 1 to 5). Neither `storage` nor `registry` is owned; both must outlive the hold.
  // FailedPrecondition: another chief holds the lock. Aborted: a newer term exists (see IsFenced).
  static absl::StatusOr<std::unique_ptr<TermHold>> Take(Storage& storage, TermRegistry& registry,
                                                        const TermOwner& owner, IfLocked if_locked = IfLocked::kRefuse);

  int64_t term() const { return term_; }
  const std::string& staging() const { return staging_; }
  Storage& storage() const { return storage_; }

  // OK while no newer term was claimed; else an Aborted status for which IsFenced is true, naming its owner.
  absl::Status CheckCurrent() const;

  // OK while this term's claim is there and is the newest. NotFound: it is gone; Aborted as CheckCurrent.
  absl::Status CheckSamePlace() const;

  // Takes the directory's lock where this chief has none and nobody holds it. Codes of the storage.
  absl::Status TakeFreeLock(const TermOwner& owner);

  // Turns the error of a failed write into the fenced status when a newer term is the cause; else returns it as it is.
  absl::Status Explain(absl::Status error) const;

  // A path in staging/<term>/ that was not given out before; the directory is there, made again where it has to be.
  // Aborted with IsFenced; NotFound: this is not the directory that was claimed (any more); else codes of the storage.
  absl::StatusOr<std::string> Scratch(absl::string_view hint);

  // Makes one of the job's directories again where somebody removed it. Codes as of Scratch.
  absl::Status EnsureDirectory(absl::string_view path);

  // Moves a published file or directory out of the way without losing it, to set_aside/<name>-<why>-term-000007[-2…],
  // and returns the new path. It goes through the staging directory, so that a fenced chief cannot move anything.
  absl::StatusOr<std::string> SetAside(absl::string_view path, absl::string_view why);

  // The other way round: moves set_aside/<name> to `path`. AlreadyExists: something is there, and nothing was moved.
  absl::Status PutBack(absl::string_view name, absl::string_view path);
  // Copies a small file to set_aside/, as SetAside would name it, and leaves it where it is. Returns the new path.
  absl::StatusOr<std::string> KeepCopy(absl::string_view path, absl::string_view why);

  // Removes a published file or directory by way of the staging directory: nothing half removed stands under its name.
  // NotFound: it is not there.
  absl::Status Remove(absl::string_view path);

  // Replaces a small file atomically by way of the staging directory.
  absl::Status Replace(absl::string_view path, absl::string_view content, Access access = Access::kShared);

 private:
  TermHold(Storage& storage, TermRegistry& registry, int64_t term, std::unique_ptr<StorageLock> lock);

  // Steps 3 and 4 again where the staging directory is gone.
  absl::Status EnsureStaging();
  absl::Status EvictOlder();
  absl::Status Evict(const std::string& name);
  absl::Status Rescue(const std::string& evicted);
  absl::StatusOr<std::string> KeepAside(absl::string_view staged, absl::string_view label);

  Storage& storage_;
  TermRegistry& registry_;
  int64_t term_;
  std::string staging_;
  std::unique_ptr<StorageLock> lock_;
  int64_t scratch_count_ = 0;
  bool staging_is_checked_ = false;  // step 4 has passed since the staging directory was created
};

// True for the statuses that mean: a newer chief has the job; exit with code 76.
bool IsFenced(const absl::Status& status);
absl::Status FencedError(absl::string_view message);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_TERM_CLAIM_H_
