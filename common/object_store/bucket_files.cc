#include "common/object_store/bucket_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Of one file: the others want threads too.
constexpr int kMostPartsUnderWay = 4;

}  // namespace

BucketWriter::~BucketWriter() {
  WaitForParts(0).IgnoreError();
  if (upload_.has_value() && !complete_) store_.AbortUpload(*upload_).IgnoreError();
}

absl::Status BucketWriter::Append(absl::string_view bytes) {
  if (closed_) return absl::FailedPreconditionError(absl::StrCat(store_.Describe(key_), " was closed"));
  if (complete_) {
    return absl::FailedPreconditionError(absl::StrCat(
        store_.Describe(key_), " is complete and cannot grow: objects of several parts are never changed"));
  }
  while (!bytes.empty()) {
    if (buffer_.size() >= part_bytes_) LS_RETURN_IF_ERROR(SendPart());
    const size_t room = static_cast<size_t>(part_bytes_) - buffer_.size();
    const absl::string_view piece = bytes.substr(0, room);
    absl::StrAppend(&buffer_, piece);
    bytes.remove_prefix(piece.size());
    stored_ = false;
  }
  return absl::OkStatus();
}

absl::Status BucketWriter::SendPart() {
  if (!upload_.has_value()) {
    LS_ASSIGN_OR_RETURN(upload_, store_.StartUpload(key_));
  }
  LS_RETURN_IF_ERROR(WaitForParts(kMostPartsUnderWay - 1));
  size_t index = 0;
  {
    MutexLock lock(&mutex_);
    index = parts_.size();
    if (index == static_cast<size_t>(kMaxParts)) {
      return absl::ResourceExhaustedError(absl::StrCat(store_.Describe(key_), " would have more than ", kMaxParts,
                                                       " parts of ", part_bytes_,
                                                       " bytes. Use more workers, so that each file of a checkpoint is "
                                                       "smaller"));
    }
    parts_.emplace_back();
    ++under_way_;
  }
  if (senders_ == nullptr) {
    PutPart(index, std::exchange(buffer_, std::string()));
    return WaitForParts(0);
  }
  senders_->Run(
      [this, index, bytes = std::exchange(buffer_, std::string())]() mutable { PutPart(index, std::move(bytes)); });
  return absl::OkStatus();
}

void BucketWriter::PutPart(size_t index, std::string bytes) {
  absl::StatusOr<UploadedPart> part = store_.PutPart(*upload_, static_cast<int>(index) + 1, bytes);
  bytes = std::string();
  MutexLock lock(&mutex_);
  if (part.ok()) {
    parts_[index] = *std::move(part);
  } else if (failed_.ok()) {
    failed_ = part.status();
  }
  --under_way_;
  part_ended_.SignalAll();  // under the lock: whoever waits may end this object
}

absl::Status BucketWriter::WaitForParts(int most) {
  MutexLock lock(&mutex_);
  while (under_way_ > most) part_ended_.Wait(&mutex_);
  return failed_;
}

absl::Status BucketWriter::Complete() {
  if (!buffer_.empty()) LS_RETURN_IF_ERROR(SendPart());
  LS_RETURN_IF_ERROR(WaitForParts(0));
  std::vector<UploadedPart> parts;
  {
    MutexLock lock(&mutex_);
    parts = parts_;
  }
  LS_RETURN_IF_ERROR(store_.CompleteUpload(*upload_, parts));
  complete_ = true;
  buffer_ = std::string();
  return absl::OkStatus();
}

absl::Status BucketWriter::Sync() {
  if (closed_) return absl::FailedPreconditionError(absl::StrCat(store_.Describe(key_), " was closed"));
  if (complete_ || stored_) return absl::OkStatus();
  if (upload_.has_value()) return Complete();
  LS_RETURN_IF_ERROR(store_.Put(key_, buffer_, PutCondition::kNone));
  stored_ = true;
  return absl::OkStatus();
}

absl::Status BucketWriter::Close() {
  LS_RETURN_IF_ERROR(Sync());
  closed_ = true;
  buffer_ = std::string();
  return absl::OkStatus();
}

FileFacts BucketReader::facts() const { return {.identity = 0, .owner = geteuid(), .is_private = true}; }

absl::Status BucketReader::ReadAt(uint64_t offset, absl::Span<char> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return absl::DataLossError(absl::StrCat(store_.Describe(key_), " has ", size_, " bytes; ", out.size(),
                                            " were to be read from ", offset, ". It is cut off"));
  }
  MutexLock lock(&mutex_);
  while (!out.empty()) {
    const bool has = offset >= begin_ && offset < begin_ + block_.size();
    if (!has) LS_RETURN_IF_ERROR(Fetch(offset, out.size()));
    const auto within = static_cast<size_t>(offset - begin_);
    const size_t taken = std::min(out.size(), block_.size() - within);
    std::memcpy(out.data(), block_.data() + within, taken);
    out.remove_prefix(taken);
    offset += taken;
    if (!whole_ && offset == size_) {  // a checkpoint has many files, and each is read to its end
      block_ = std::string();
      begin_ = offset;
    }
  }
  return absl::OkStatus();
}

absl::Status BucketReader::Fetch(uint64_t offset, uint64_t wanted) const {
  const bool in_order = length_ > 0 && offset == begin_ + block_.size();
  length_ = in_order ? std::min(length_ * 4, blocks_.longest) : blocks_.first;
  const uint64_t length = std::min(size_ - offset, std::clamp(wanted, length_, blocks_.longest));
  LS_ASSIGN_OR_RETURN(block_, store_.GetRange(key_, offset, length));
  begin_ = offset;
  if (block_.size() == length) return absl::OkStatus();
  const size_t got = block_.size();
  block_.clear();
  return absl::DataLossError(absl::StrCat(store_.Describe(key_), " gave ", got, " bytes from ", offset, "; expected ",
                                          length, ". It was changed meanwhile"));
}

}  // namespace lockstep
