// Stores the records of a commit log in numbered slots, each of which is filled once. The safety of a job rests on one
// operation of the storage only: Create.
//
// Invariants
//   * A slot that was filled keeps its bytes until it is removed; a reader sees all of them, or none.
//   * Among several Creates of one empty slot exactly one fills it.
//   * A slot for which Create returned OK survives the loss of power, and every later Newest lists it.
// Threading: ObjectSlots is thread-safe, StorageSlots and MemorySlots are thread-compatible; every call blocks on the
// storage.
#ifndef LOCKSTEP_COMMON_COMMIT_LOG_SLOTS_H_
#define LOCKSTEP_COMMON_COMMIT_LOG_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

class Slots {
 public:
  virtual ~Slots() = default;

  // The numbers of the newest `limit` slots that are filled, the highest first.
  virtual absl::StatusOr<std::vector<uint64_t>> Newest(size_t limit) = 0;
  // NotFound: the slot is empty.
  virtual absl::StatusOr<std::string> Get(uint64_t number) = 0;
  // Fills an empty slot. AlreadyExists: it was filled, perhaps by an earlier call of this process whose answer was
  // lost. After every other error the slot may be filled, now or later, with these bytes.
  virtual absl::Status Create(uint64_t number, absl::string_view bytes) = 0;
  // OK when it is empty.
  virtual absl::Status Remove(uint64_t number) = 0;
  // The place of the slot as a user would find it, for messages.
  virtual std::string Describe(uint64_t number) const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_SLOTS_H_
