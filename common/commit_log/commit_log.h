// The commit log of a job: what is true of it is what the newest record says (docs/design/0014-commit-log.md). Taking
// over, committing and retiring are one Append each of the whole state with that change.
//
//   1 unread ──Read──▶ 2 follows a head ──Append──▶ 2 follows the new one
//                          │      ▲ └─ an error: it is unknown what happened ─▶ 3 asked
//                          │      └─────────── Append: this change, or the one before, ┘
//                          └─ another's record stands where the next was to be ─▶ 4 fenced, for good
//
// Invariants
//   * An Append that said kDone stands in the history that every later reader sees, whoever appends after it.
//   * Of several processes that follow one head, one at most hears kDone for the next record.
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
  kEarlier,  // an Append before, whose outcome was unknown, had gone through: head() is that record, this one is none
  kFenced,   // head() is not the newest any more: another process has the job
};

class CommitLog {
 public:
  static constexpr int kFormat = 2;
  static constexpr uint64_t kKept = 1000;    // records, for people and against gaps
  static constexpr size_t kLooksBehind = 8;  // damaged records behind which a whole one is looked for

  // `make_nonce` gives another text at each call, in every process. `slots` is not owned.
  CommitLog(Slots* slots, std::function<std::string()> make_nonce, uint64_t kept = kKept)
      : slots_(*slots), make_nonce_(std::move(make_nonce)), kept_(kept) {}

  // The newest record that is whole; it is the head that the next Append follows. NotFound: there is no log yet, and
  // the next Append begins one. DataLoss: none of the newest records is whole; FailedPrecondition: the newest is of a
  // newer program; else of the slots. What was passed over because it is damaged is said in `messages`.
  absl::StatusOr<CommitRecord> Read(std::vector<std::string>& messages);
  const std::optional<CommitRecord>& head() const { return head_; }

  // The newest record when another process appended it behind the head; nullopt when head() is the newest, or a record
  // whose outcome this process does not know yet. After a record nothing is appended any more. NotFound: the head is
  // gone, so these are not the slots that were read. Codes of the slots; DataLoss: the newest record is damaged.
  // REQUIRES: as Append.
  absl::StatusOr<std::optional<CommitRecord>> Newer();

  // Appends what the head says with one change: the caller has set every field but format, number, nonce, follows and
  // the digest. An error: it is unknown whether it went in; the data that it names must stay until a later call says
  // what happened. REQUIRES: Read was called, and said OK or NotFound.
  absl::StatusOr<Appended> Append(CommitRecord next);

 private:
  absl::StatusOr<CommitRecord> ReadOnce(std::vector<std::string>& messages);
  absl::StatusOr<CommitRecord> ReadSlot(uint64_t number);
  // The slot of the next record, which `nonce` was to be, is taken: by whom?
  absl::StatusOr<Appended> Judge(uint64_t number, const std::string& nonce);
  // Whether another process has appended behind the head. False where that cannot be seen.
  bool IsFollowed();
  // The record stands in its slot: it counts when there is no higher one.
  absl::StatusOr<Appended> Confirm(const CommitRecord& record);
  void RemoveOld(uint64_t newest);

  Slots& slots_;
  const std::function<std::string()> make_nonce_;
  const uint64_t kept_;
  bool read_ = false;
  bool fenced_ = false;
  std::optional<CommitRecord> head_;
  std::map<std::string, CommitRecord> asked_;  // by nonce: those whose outcome is unknown, all of the next number
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_COMMIT_LOG_H_
