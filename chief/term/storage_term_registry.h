// Terms as directories (chief/term-000007), each claimed by an exclusive create, which the storage makes atomic and
// durable. Programs without a commit log used only these; in their directories a chief claims one once more.
//
// Threading: thread-compatible; every call blocks.
#ifndef LOCKSTEP_CHIEF_TERM_STORAGE_TERM_REGISTRY_H_
#define LOCKSTEP_CHIEF_TERM_STORAGE_TERM_REGISTRY_H_

#include <string>

#include "absl/status/statusor.h"
#include "chief/term/term_registry.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

class StorageTermRegistry final : public TermRegistry {
 public:
  // `storage` is not owned.
  explicit StorageTermRegistry(Storage& storage) : storage_(storage) {}

  absl::StatusOr<int64_t> Claim(TermOwner owner) override;
  absl::StatusOr<int64_t> Newest() const override;
  absl::StatusOr<TermOwner> OwnerOf(int64_t term) const override;
  absl::Status Refresh() override;
  std::string Describe(int64_t term) const override { return storage_.Describe(layout::TermPath(term)); }

 private:
  Storage& storage_;
  int64_t looks_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_STORAGE_TERM_REGISTRY_H_
