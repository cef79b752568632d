#include "common/tensorflow_bundle/bundle_writer.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/tensorflow_bundle/string_tensor.h"

namespace lockstep {

BundleWriter::BundleWriter(Storage& storage, absl::string_view prefix, uint64_t shard_bytes)
    : storage_(storage),
      prefix_(prefix),
      scratch_(absl::StrCat(absl::Hex(std::random_device()(), absl::kZeroPad8))),
      shard_bytes_(shard_bytes) {
  index_.shards = 0;
}

namespace {

absl::Status CheckFree(const Storage& storage, absl::string_view prefix) {
  const std::string index = absl::StrCat(prefix, kIndexSuffix);
  LS_ASSIGN_OR_RETURN(const bool taken, storage.Exists(index));
  if (!taken) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(storage.Describe(index), " is there; name another prefix, or remove that checkpoint first"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Begin(Storage& storage, absl::string_view prefix,
                                                                  uint64_t shard_bytes) {
  LS_RETURN_IF_ERROR(CheckFree(storage, prefix));
  return std::unique_ptr<BundleWriter>(new BundleWriter(storage, prefix, shard_bytes));
}

BundleWriter::~BundleWriter() {
  file_ = nullptr;
  // The index before what it names.
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) storage_.RemoveTree(*path).IgnoreError();
}

std::string BundleWriter::Scratch(absl::string_view what) const {
  return JoinPath(ParentPath(prefix_), absl::StrCat(".", BaseName(prefix_), ".", what, ".", scratch_, ".partial"));
}

absl::Status BundleWriter::CloseShard() {
  if (file_ == nullptr) return absl::OkStatus();
  LS_RETURN_IF_ERROR(file_->Sync());
  LS_RETURN_IF_ERROR(file_->Close());
  file_ = nullptr;
  return absl::OkStatus();
}

// Begins a data file where the newest one does not take so many bytes more.
absl::Status BundleWriter::MakeRoom(uint64_t bytes) {
  const bool fits = file_bytes_ == 0 || (file_bytes_ <= shard_bytes_ && bytes <= shard_bytes_ - file_bytes_);
  if (file_ != nullptr && fits) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CloseShard());
  const std::string scratch = Scratch(absl::StrCat("data-", index_.shards));
  made_.push_back(scratch);
  LS_ASSIGN_OR_RETURN(file_, storage_.CreateFile(scratch, Access::kShared));
  ++index_.shards;
  file_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status BundleWriter::Write(BundleEntry entry, const GiveBytes& give) {
  if (entry.key.empty() || !keys_.insert(entry.key).second) {
    return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(entry.key),
                                                   "' cannot be the key of a tensor of ", prefix_,
                                                   entry.key.empty() ? "" : ": another one has it"));
  }
  LS_RETURN_IF_ERROR(MakeRoom(entry.size));
  entry.shard = index_.shards - 1;
  entry.offset = file_bytes_;
  uint64_t given = 0;
  uint32_t crc = 0;
  LS_RETURN_IF_ERROR(give([&](absl::string_view piece) {
    crc = Crc32c(piece, crc);
    given += piece.size();
    return file_->Append(piece);
  }));
  if (given != entry.size) {
    return absl::InternalError(
        absl::StrCat("'", absl::CHexEscape(entry.key), "' came with ", given, " bytes; it has ", entry.size));
  }
  file_bytes_ += given;
  bytes_ += given;
  if (entry.type != kTensorflowString) entry.crc32c = MaskCrc32c(crc);
  index_.entries.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status BundleWriter::Add(const TensorSpec& tensor, const GiveBytes& give) {
  LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(tensor.dtype, tensor.shape));
  return Write({.key = tensor.name,
                .type = ToTensorflowType(tensor.dtype),
                .shape = tensor.shape,
                .size = static_cast<uint64_t>(bytes)},
               give);
}

absl::Status BundleWriter::AddString(absl::string_view key, absl::string_view value) {
  if (value.size() > kMaxStringTensorBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::CHexEscape(key), "' has ", value.size(), " bytes; at most ", kMaxStringTensorBytes));
  }
  const StringTensor encoded = EncodeStringTensor(value);
  return Write(
      {.key = std::string(key), .type = kTensorflowString, .size = encoded.bytes.size(), .crc32c = encoded.crc32c},
      [&](const TakeBytes& take) { return take(encoded.bytes); });
}

// Gives a file its name, unless another file has it.
absl::Status BundleWriter::Rename(const std::string& scratch, const std::string& name) {
  const absl::Status renamed = storage_.Rename(scratch, name);
  if (absl::IsAlreadyExists(renamed)) {
    return absl::AlreadyExistsError(absl::StrCat(storage_.Describe(name), " is there, and no index was; name another ",
                                                 "prefix, or remove it where nothing writes that checkpoint"));
  }
  // It may have its name in spite of an error.
  made_.push_back(name);
  return renamed;
}

// Data first: whoever finds the index finds what it names.
absl::Status BundleWriter::Place() {
  LS_RETURN_IF_ERROR(CheckFree(storage_, prefix_));
  const std::string scratch = Scratch("index");
  const std::string bytes = EncodeBundleIndex(index_);
  bytes_ += bytes.size();
  made_.push_back(scratch);
  LS_RETURN_IF_ERROR(WriteNewFile(storage_, scratch, bytes, Access::kShared));
  for (int shard = 0; shard < index_.shards; ++shard) {
    LS_RETURN_IF_ERROR(Rename(Scratch(absl::StrCat("data-", shard)), DataFileName(prefix_, shard, index_.shards)));
  }
  return Rename(scratch, absl::StrCat(prefix_, kIndexSuffix));
}

absl::StatusOr<uint64_t> BundleWriter::Finish() {
  if (index_.shards == 0) LS_RETURN_IF_ERROR(MakeRoom(0));  // a checkpoint has a data file, if an empty one
  LS_RETURN_IF_ERROR(CloseShard());
  std::sort(index_.entries.begin(), index_.entries.end(),
            [](const BundleEntry& a, const BundleEntry& b) { return a.key < b.key; });
  LS_RETURN_IF_ERROR(Place());
  made_.clear();
  return bytes_;
}

}  // namespace lockstep
