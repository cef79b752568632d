#include "common/commit_log/commit_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint_format/sealed.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<CommitRecord> CommitLog::ReadSlot(uint64_t number) {
  LS_ASSIGN_OR_RETURN(const std::string json, slots_.Get(number));
  CommitRecord record;
  const std::string where = slots_.Describe(number);
  LS_RETURN_IF_ERROR(ReadSealedJson(json, where, kFormat, &record));
  if (record.sha256().empty() || record.number() != static_cast<int64_t>(number)) {
    return absl::DataLossError(absl::StrCat(where, " is no record of this log: it says number ", record.number()));
  }
  return record;
}

absl::StatusOr<CommitRecord> CommitLog::Read(std::vector<std::string>& messages) {
  constexpr int kLooks = 3;
  for (int look = 0; look < kLooks; ++look) {
    const absl::StatusOr<std::vector<uint64_t>> any = slots_.Newest(1);
    absl::StatusOr<CommitRecord> record = ReadOnce(messages);
    // A record that was listed and is gone: so many were appended meanwhile that it was removed.
    if (!absl::IsNotFound(record.status()) || (any.ok() && any->empty())) return record;
  }
  read_ = false;
  return absl::UnavailableError("the records of the commit log go faster than they can be read");
}

absl::StatusOr<CommitRecord> CommitLog::ReadOnce(std::vector<std::string>& messages) {
  LS_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, slots_.Newest(kLooksBehind));
  read_ = true;
  if (numbers.empty()) return absl::NotFoundError("there is no commit log yet");
  std::vector<std::string> damaged;
  for (const uint64_t number : numbers) {
    absl::StatusOr<CommitRecord> record = ReadSlot(number);
    // Once more: what a disk or a connection damaged on the way is whole where it lies.
    if (absl::IsDataLoss(record.status())) record = ReadSlot(number);
    if (absl::IsDataLoss(record.status())) {
      damaged.emplace_back(record.status().message());
      continue;
    }
    if (!record.ok()) {
      read_ = false;
      return record.status();
    }
    for (const std::string& what : damaged) {
      messages.push_back(absl::StrCat(what, "; record ", number, " is used, and what came after it is not known"));
    }
    head_ = *record;
    // Damaged or not, a slot that is filled is not filled again: the next record goes behind it.
    head_->set_number(static_cast<int64_t>(numbers.front()));
    asked_.clear();
    return *std::move(record);
  }
  read_ = false;
  return absl::DataLossError(absl::StrCat("no record of the commit log is whole: ", absl::StrJoin(damaged, "; ")));
}

absl::StatusOr<Appended> CommitLog::Append(CommitRecord next) {
  LS_CHECK(read_, "a log is read before it is appended to");
  if (fenced_) return Appended::kFenced;
  const uint64_t number = head_.has_value() ? static_cast<uint64_t>(head_->number()) + 1 : 1;
  next.set_format_version(kFormat);
  next.set_number(static_cast<int64_t>(number));
  next.set_nonce(make_nonce_());
  next.set_follows(head_.has_value() ? head_->nonce() : "");
  const std::string bytes = SealJson(&next);
  const absl::Status created = slots_.Create(number, bytes);
  if (created.ok()) return Confirm(next);
  const std::string nonce = next.nonce();
  asked_[nonce] = std::move(next);
  if (absl::IsAlreadyExists(created)) return Judge(number, nonce);
  // The record was taken away before it had its slot: whoever takes over sweeps.
  if (absl::IsNotFound(created) && IsFollowed()) return Appended::kFenced;
  return created;
}

absl::StatusOr<std::optional<CommitRecord>> CommitLog::Newer() {
  LS_CHECK(read_, "a log is read before anything is compared with it");
  LS_ASSIGN_OR_RETURN(const std::vector<uint64_t> newest, slots_.Newest(1));
  const uint64_t there = newest.empty() ? 0 : newest.front();
  const uint64_t head = head_.has_value() ? static_cast<uint64_t>(head_->number()) : 0;
  if (there < head) return absl::NotFoundError(absl::StrCat(slots_.Describe(head), " is gone"));
  if (there == head) return std::optional<CommitRecord>();
  LS_ASSIGN_OR_RETURN(CommitRecord record, ReadSlot(there));
  if (asked_.contains(record.nonce())) return std::optional<CommitRecord>();
  fenced_ = true;
  return std::optional<CommitRecord>(std::move(record));
}

bool CommitLog::IsFollowed() {
  const absl::StatusOr<std::optional<CommitRecord>> newer = Newer();
  return newer.ok() && newer->has_value();
}

absl::StatusOr<Appended> CommitLog::Judge(uint64_t number, const std::string& nonce) {
  const absl::StatusOr<CommitRecord> there = ReadSlot(number);
  // It was filled and is gone: so many were appended since that it was removed.
  const bool removed = absl::IsNotFound(there.status());
  if (!there.ok() && !removed) return there.status();
  const auto mine = removed ? asked_.end() : asked_.find(there->nonce());
  if (mine == asked_.end()) {
    fenced_ = true;
    return Appended::kFenced;
  }
  LS_ASSIGN_OR_RETURN(const Appended confirmed, Confirm(CommitRecord(mine->second)));
  if (confirmed == Appended::kFenced || head_->nonce() == nonce) return confirmed;
  return Appended::kEarlier;
}

absl::StatusOr<Appended> CommitLog::Confirm(const CommitRecord& record) {
  const absl::StatusOr<std::vector<uint64_t>> newest = slots_.Newest(1);
  if (!newest.ok()) {
    asked_[record.nonce()] = record;
    return newest.status();
  }
  if (newest->empty() || newest->front() != static_cast<uint64_t>(record.number())) {
    fenced_ = true;
    return Appended::kFenced;
  }
  head_ = record;
  asked_.clear();
  RemoveOld(newest->front());
  return Appended::kDone;
}

// What cannot be removed stays.
void CommitLog::RemoveOld(uint64_t newest) {
  if (newest > kept_) slots_.Remove(newest - kept_).IgnoreError();
}

}  // namespace lockstep
