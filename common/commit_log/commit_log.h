// The commit log of a job: the newest record is the truth about the job (docs/design/0014-commit-log.md). Taking over,
// committing and retiring each are one Append of a whole new state that differs from the head by that change.
//
//   1 unread ──Read──▶ 2 follows a head ──Append──▶ 2 follows the new one
//                          │      ▲ └─ an error: it is unknown what happened ─▶ 3 asked
//                          │      └─────────── Append: this change, or the one before, ┘
//                          └─ another's record stands where the next was to be ─▶ 4 fenced, for good
//
// Invariants
//   * A record whose Append returned kDone is in the history that every later reader sees, whichever process appends
//     after it.
//   * Of several processes that follow one head, at most one gets kDone for the next record.
//   * After kFenced nothing is appended any more.
// Threading: thread-compatible; every call blocks on the slots.
#ifndef LOCKSTEP_COMMON_COMMIT_LOG_COMMIT_LOG_H_
#define LOCKSTEP_COMMON_COMMIT_LOG_COMMIT_LOG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/commit_log/slots.h"
#include "protos/commit_log.pb.h"

namespace lockstep {

enum class Appended : uint8_t {
  kDone,     // head() is the record
  kEarlier,  // an earlier Append with unknown outcome had succeeded: head() is its record, this one was not appended
  kFenced,   // head() is no longer the newest record: another process has taken over the job
};

class CommitLog {
 public:
  static constexpr int kFormat = 2;
  static constexpr uint64_t kKept = 1000;    // records, for people and against gaps
  static constexpr size_t kLooksBehind = 8;  // damaged newest records that Read skips in search of an intact one

  // `make_nonce` returns a text that is unique over all calls and processes. `slots` is not owned.
  CommitLog(Slots* slots, std::function<std::string()> make_nonce, uint64_t kept = kKept)
      : slots_(*slots), make_nonce_(std::move(make_nonce)), kept_(kept) {}

  // Returns the newest intact record and makes it the head that the next Append follows. NotFound: there is no log yet,
  // and the next Append begins one. DataLoss: none of the newest records is intact. FailedPrecondition: a newer program
  // wrote the newest record. Other codes are those of the slots. `messages` gets a line for each damaged record that
  // was skipped.
  absl::StatusOr<CommitRecord> Read(std::vector<std::string>& messages);
  const std::optional<CommitRecord>& head() const { return head_; }

  // The newest record when another process appended it after the head; nullopt when the newest is head(), or a record
  // of this process whose outcome it does not know yet. Once this returned a record, Append appends nothing any more.
  // NotFound: the head is gone, so these are not the slots that were read. DataLoss: the newest record is damaged.
  // Other codes are those of the slots. REQUIRES: as Append.
  absl::StatusOr<std::optional<CommitRecord>> Newer();

  // Appends `next`, the head with one change; the caller sets every field but format, number, nonce, follows and the
  // digest. After an error it is unknown whether the record was appended; the data that it names must be kept until a
  // later call tells. REQUIRES: Read was called, and said OK or NotFound.
  absl::StatusOr<Appended> Append(CommitRecord next);

 private:
  absl::StatusOr<CommitRecord> ReadOnce(std::vector<std::string>& messages);
  absl::StatusOr<CommitRecord> ReadSlot(uint64_t number);
  // Called when the slot of the next record is taken: finds out whether the record in it is `nonce`, an earlier one of
  // this process, or another process's.
  absl::StatusOr<Appended> Judge(uint64_t number, const std::string& nonce);
  // Whether another process has appended after the head. False when the slots cannot be read.
  bool IsFollowed();
  // Called when the record stands in its slot: it counts unless there is a higher one.
  absl::StatusOr<Appended> Confirm(const CommitRecord& record);
  void RemoveOld(uint64_t newest);

  Slots& slots_;
  const std::function<std::string()> make_nonce_;
  const uint64_t kept_;
  bool read_ = false;
  bool fenced_ = false;
  std::optional<CommitRecord> head_;
  std::map<std::string, CommitRecord> asked_;  // by nonce: of unknown outcome, all for the slot after the head
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_COMMIT_LOG_H_
