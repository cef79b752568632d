// A job's bucket, held by one chief. A claim is one append to the commit log; nothing else is taken over:
//   * A chief writes under final names, in folders whose names have its term and a random number. They count once its
//     record names them. A chief that was succeeded cannot append its record, as the slot is taken.
//   * Every call that writes or removes first looks for a newer term, so that a chief that was succeeded ends soon.
//     What it may still do between that look and its request is harmless: the small files that it replaces are hints,
//     or have the same bytes whoever writes them, or have its term in their name.
//   * It removes only what no record names any more.
//
// Invariants
//   * Everything under a name of this term was written by this process.
// Threading: thread-compatible; every call blocks on the store.
#ifndef LOCKSTEP_CHIEF_TERM_BUCKET_HOLD_H_
#define LOCKSTEP_CHIEF_TERM_BUCKET_HOLD_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/term/term_claim.h"
#include "chief/term/term_registry.h"
#include "common/object_store/bucket_storage.h"
#include "common/sync/mutex.h"
#include "protos/commit_log.pb.h"

namespace lockstep::chief {

class BucketHold final : public TermHold {
 public:
  // Claims the next term. Neither `bucket` nor `registry` is owned; both must outlive the hold. Aborted with IsFenced:
  // a newer term exists; else codes of the storage.
  static absl::StatusOr<std::unique_ptr<BucketHold>> Take(BucketStorage& bucket, TermRegistry& registry,
                                                          const TermOwner& owner);

  // Removes what chiefs of lower terms left and `record` does not name: saves that were never recorded, uploads that
  // never became an object, temporary files. `record`: the newest one, of this term. `messages` say what could not be
  // removed; the next start tries again. Aborted with IsFenced.
  absl::Status Sweep(const CommitRecord& record, std::vector<std::string>& messages);

  bool in_bucket() const override { return true; }
  absl::Status TakeFreeLock(const TermOwner& owner) override;
  absl::StatusOr<std::string> Scratch(absl::string_view hint) override;
  absl::Status EnsureDirectory(absl::string_view path) override;
  absl::StatusOr<std::string> NewCheckpoint(int64_t step, const std::set<std::string>& folders) override;
  absl::StatusOr<std::string> PlaceCheckpoint(const std::string& folder, int64_t step) override;
  absl::Status Discard(const std::string& folder) override;
  absl::Status StoreNew(absl::string_view path, absl::string_view content) override;
  absl::StatusOr<std::string> SetAside(absl::string_view path, absl::string_view why) override;
  absl::Status PutBack(absl::string_view name, absl::string_view path) override;
  absl::StatusOr<std::string> KeepCopy(absl::string_view path, absl::string_view why) override;
  absl::Status Remove(absl::string_view path) override;
  absl::Status Replace(absl::string_view path, absl::string_view content, Access access) override;

 private:
  BucketHold(BucketStorage& bucket, TermRegistry& registry, int64_t term)
      : TermHold(bucket, registry, term), bucket_(bucket) {}

  BucketStorage& bucket_;
  int64_t scratch_count_ = 0;
  Mutex mutex_;
  std::set<std::string> placed_ GUARDED_BY(mutex_);  // folders that a record may name
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_BUCKET_HOLD_H_
