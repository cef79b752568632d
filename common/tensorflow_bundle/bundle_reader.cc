#include "common/tensorflow_bundle/bundle_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/tensorflow_bundle/string_tensor.h"
#include "common/tensorflow_bundle/table.h"

namespace lockstep {

absl::StatusOr<BundleReader> BundleReader::Open(const Storage& storage, absl::string_view prefix) {
  const std::string path = absl::StrCat(prefix, kIndexSuffix);
  BundleReader reader;
  reader.shown_ = storage.Describe(prefix);
  LS_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(storage, path, kMaxTableBytes));
  LS_ASSIGN_OR_RETURN(reader.index_, ParseBundleIndex(bytes, storage.Describe(path)));
  std::map<int, uint64_t> ends;  // of what lies in each data file
  for (const BundleEntry& entry : reader.index_.entries) {
    if (entry.partitioned) continue;
    uint64_t& end = ends[entry.shard];
    end = std::max(end, entry.offset + entry.size);
  }
  for (const auto& [shard, end] : ends) {
    const std::string name = DataFileName(prefix, shard, reader.index_.shards);
    LS_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, storage.OpenFile(name));
    if (file->size() < end) {
      return absl::DataLossError(absl::StrCat(storage.Describe(name), " has ", file->size(), " bytes; its index names ",
                                              end, ": it was cut, or is of another index"));
    }
    reader.files_.emplace(shard, std::move(file));
  }
  return reader;
}

absl::Status BundleReader::Read(const BundleEntry& entry, absl::Span<char> out) const {
  LS_RETURN_IF_ERROR(files_.at(entry.shard)->ReadAt(entry.offset, out));
  if (MaskCrc32c(Crc32c({out.data(), out.size()})) == entry.crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("tensor '", absl::CHexEscape(entry.key), "' of ", shown_,
                                          " has another checksum than it had when it was written"));
}

absl::StatusOr<std::string> BundleReader::ReadString(const BundleEntry& entry) const {
  const std::string name = absl::StrCat("tensor '", absl::CHexEscape(entry.key), "' of ", shown_);
  if (entry.type != kTensorflowString || entry.partitioned || !entry.shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no string"));
  }
  if (entry.size > kMaxStringTensorBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", entry.size, " bytes; at most ", kMaxStringTensorBytes, " are read"));
  }
  StringTensor tensor{std::string(entry.size, '\0'), entry.crc32c};
  LS_RETURN_IF_ERROR(files_.at(entry.shard)->ReadAt(entry.offset, absl::MakeSpan(tensor.bytes)));
  absl::StatusOr<std::string> value = DecodeStringTensor(tensor);
  if (value.ok()) return value;
  return absl::Status(value.status().code(), absl::StrCat(name, ": ", value.status().message()));
}

}  // namespace lockstep
