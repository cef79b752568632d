// The slots of a commit log in an object store: slot n is the object `<folder>/<10^19 - 1 - n in 20 digits>`, stored by
// a Put with kIfAbsent.
//
// Threading: thread-safe; every call blocks on the store.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_SLOTS_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_SLOTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/commit_log/slots.h"
#include "common/object_store/object_store.h"

namespace lockstep {

class ObjectSlots final : public Slots {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{16} << 20;  // of a slot

  // `store` is not owned.
  ObjectSlots(ObjectStore* store, std::string folder) : store_(*store), folder_(std::move(folder)) {}

  absl::StatusOr<std::vector<uint64_t>> Newest(size_t limit) override;
  // DataLoss when the object is longer than any record.
  absl::StatusOr<std::string> Get(uint64_t number) override;
  // AlreadyExists also when the store had to repeat the request and its first attempt had succeeded.
  absl::Status Create(uint64_t number, absl::string_view bytes) override;
  absl::Status Remove(uint64_t number) override;
  std::string Describe(uint64_t number) const override;

 private:
  std::string KeyOf(uint64_t number) const;

  ObjectStore& store_;
  const std::string folder_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_SLOTS_H_
