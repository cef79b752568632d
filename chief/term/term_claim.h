// How a chief takes over a job's directory, and how it notices that another one took it over (rule 13). A bucket is
// taken over by the claim alone (bucket_hold.h).
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
// A missing staging directory was taken by a newer chief or removed by hand. Steps 3 and 4 are then repeated under the
// same term. That is as safe as at the claim: the recheck sees a chief that claimed before it, so this one is fenced; a
// chief that claims later finds the new directory in its step 5. Nothing is staged before a recheck has passed, even if
// one failed in between. If chief/term-<n>/ is missing too, the storage was unmounted or removed as a whole: nothing is
// made there.
// Threading: thread-compatible; every call blocks.
#ifndef LOCKSTEP_CHIEF_TERM_TERM_CLAIM_H_
#define LOCKSTEP_CHIEF_TERM_TERM_CLAIM_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/term/term_registry.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// What to do while another chief of this machine holds the directory's lock. The lock only protects a user who starts a
// second chief by mistake; the term decides.
enum class IfLocked {
  kRefuse,
  kTakeOver,  // that chief is known to be inactive
};

// All changes that a chief makes to its job's place, which no earlier chief can make any more. There is one
// implementation for a directory and one for a bucket (bucket_hold.h).
class TermHold {
 public:
  // Takes over a directory (steps 1 to 5). Neither `storage` nor `registry` is owned; both must outlive the hold.
  // FailedPrecondition: another chief holds the lock. Aborted: a newer term exists (see IsFenced).
  static absl::StatusOr<std::unique_ptr<TermHold>> Take(Storage& storage, TermRegistry& registry,
                                                        const TermOwner& owner, IfLocked if_locked = IfLocked::kRefuse);
  virtual ~TermHold() = default;

  int64_t term() const { return term_; }
  Storage& storage() const { return storage_; }

  // OK while no newer term was claimed; else an Aborted status for which IsFenced is true, naming its owner.
  absl::Status CheckCurrent() const;

  // OK while this term's claim exists and is the newest. NotFound: it is gone. Aborted: as CheckCurrent.
  absl::Status CheckSamePlace() const;

  // Turns the error of a failed write into the fenced status when a newer term is the cause; else returns it as it is.
  absl::Status Explain(absl::Status error) const;

  // Whether the place is a bucket, where nothing is moved: data is stored under its final name and counts once a record
  // of the log names it; what is set aside stays where it is, and a record must say so.
  virtual bool in_bucket() const = 0;

  // Takes the lock of the place if this chief does not hold it and nobody else does. Codes of the storage.
  virtual absl::Status TakeFreeLock(const TermOwner& owner) = 0;

  // A new path for a temporary file of this term. In a directory it is below staging/, which is made again if
  // necessary. Aborted with IsFenced. NotFound: this is not, or no longer, the place that was claimed. Else codes of
  // the storage.
  virtual absl::StatusOr<std::string> Scratch(absl::string_view hint) = 0;

  // Makes one of the job's directories if it is missing. Codes as of Scratch.
  virtual absl::Status EnsureDirectory(absl::string_view path) = 0;

  // Makes a new folder for the files of a save of this step, with `folders` in it, and returns its path. Codes as of
  // Scratch.
  virtual absl::StatusOr<std::string> NewCheckpoint(int64_t step, const std::set<std::string>& folders) = 0;
  // Moves that folder, whose files are all durable, to its place as a checkpoint, and returns the path. AlreadyExists:
  // the place is taken. Aborted with IsFenced; else codes of the storage.
  virtual absl::StatusOr<std::string> PlaceCheckpoint(const std::string& folder, int64_t step) = 0;

  // Removes the folder of an abandoned save. Does nothing once it has its place, as a record may name it. Thread-safe.
  virtual absl::Status Discard(const std::string& folder) = 0;

  // Stores a file that is named after its content. AlreadyExists: there is one with that name. Codes as of Scratch.
  virtual absl::Status StoreNew(absl::string_view path, absl::string_view content) = 0;

  // Moves something published out of the way without deleting it, and returns its new path:
  // set_aside/<name>-<why>-term-000007[-2…] in a directory, and for a file in a bucket; a checkpoint in a bucket stays
  // where it is. A fenced chief cannot move anything.
  virtual absl::StatusOr<std::string> SetAside(absl::string_view path, absl::string_view why) = 0;

  // The inverse of SetAside: moves set_aside/<name> to `path`. AlreadyExists: `path` is taken, and nothing was moved.
  // REQUIRES: a directory.
  virtual absl::Status PutBack(absl::string_view name, absl::string_view path) = 0;
  // Copies a small file to set_aside/, under the name that SetAside would give it. Returns the new path.
  virtual absl::StatusOr<std::string> KeepCopy(absl::string_view path, absl::string_view why) = 0;

  // Removes a published file or directory. In a directory nothing half removed remains under its name; in a bucket no
  // record may name it any more. NotFound: it does not exist.
  virtual absl::Status Remove(absl::string_view path) = 0;

  // Replaces a small file atomically.
  virtual absl::Status Replace(absl::string_view path, absl::string_view content, Access access = Access::kShared) = 0;

 protected:
  TermHold(Storage& storage, TermRegistry& registry, int64_t term)
      : storage_(storage), registry_(registry), term_(term) {}

  TermRegistry& registry() const { return registry_; }

 private:
  Storage& storage_;
  TermRegistry& registry_;
  const int64_t term_;
};

// Whether a status means that a newer chief has the job: exit with code 76.
bool IsFenced(const absl::Status& status);
absl::Status FencedError(absl::string_view message);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_TERM_CLAIM_H_
