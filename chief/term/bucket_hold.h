// A job's bucket in the hands of one chief. A claim is one append to the commit log, and nothing else is taken over:
//   * what a chief writes lies under its final name, in folders that have its term and a random number in their names,
//     and counts when its record names it; the record of a chief that was followed finds its slot taken
//   * every call that writes or removes looks for a newer term first, so that a chief that was followed ends soon. What
//     it may still do between that look and its request harms nobody: small files that it replaces are hints, or have
//     the same bytes whoever writes them, or have its term in their name
//   * it removes only what no record names any more
//
// Invariants
//   * What is under a name of this term was written by this process.
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

  // Removes what chiefs of lower terms left and `record`, the newest one, which is of this term, does not name: saves
  // that did not come to their record, uploads that never became an object, passing files. What cannot be removed is
  // said in `messages` and goes at the next start. Aborted with IsFenced.
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
