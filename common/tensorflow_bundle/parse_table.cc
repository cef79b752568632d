#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/status/status_macros.h"
#include "common/tensorflow_bundle/table.h"
#include "common/tensorflow_bundle/table_layout.h"
#include "common/tensorflow_bundle/varint.h"

namespace lockstep {
namespace {

using KeyAndValue = std::pair<std::string, absl::string_view>;

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(what); }

absl::StatusOr<BlockHandle> TakeHandle(absl::string_view& in) {
  const std::optional<uint64_t> offset = TakeVarint(in);
  const std::optional<uint64_t> size = offset.has_value() ? TakeVarint(in) : std::nullopt;
  if (!size.has_value()) return Damaged("the place of a block does not end");
  return BlockHandle{*offset, *size};
}

std::string At(const BlockHandle& handle) { return absl::StrCat("the block at byte ", handle.offset); }

// The content of a block, compared with its CRC.
absl::StatusOr<absl::string_view> ReadBlock(absl::string_view file, const BlockHandle& handle) {
  const uint64_t end = file.size() - kFooterBytes;  // of the blocks
  if (handle.offset > end || end - handle.offset < kBlockTrailerBytes ||
      handle.size > end - handle.offset - kBlockTrailerBytes) {
    return Damaged(absl::StrCat(At(handle), " is said to have ", handle.size, " bytes; the file has ", file.size()));
  }
  const absl::string_view content = file.substr(handle.offset, handle.size);
  const absl::string_view with_type = file.substr(handle.offset, handle.size + 1);
  if (MaskCrc32c(Crc32c(with_type)) != Fixed32At(file.substr(handle.offset + handle.size + 1))) {
    return Damaged(absl::StrCat(At(handle), " has another checksum than it had when it was written"));
  }
  switch (static_cast<uint8_t>(with_type.back())) {
    case kNotCompressed:
      return content;
    case kSnappy:
      return absl::InvalidArgumentError(
          "it is compressed with Snappy, which is not read; save it again with tf.train.Checkpoint.write or "
          "tf.compat.v1.train.Saver, which do not compress");
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("it is compressed in a way that is not read, number ", static_cast<int>(with_type.back())));
  }
}

// Takes one entry whose key goes on from `key`, which becomes that of the entry.
absl::StatusOr<absl::string_view> TakeEntry(absl::string_view& in, std::string& key) {
  const std::optional<uint64_t> shared = TakeVarint(in);
  const std::optional<uint64_t> more = shared.has_value() ? TakeVarint(in) : std::nullopt;
  const std::optional<uint64_t> value = more.has_value() ? TakeVarint(in) : std::nullopt;
  if (!value.has_value() || *more > in.size() || *value > in.size() - *more) return Damaged("an entry does not end");
  if (*shared > key.size()) return Damaged("a key shares more bytes with the key before than that one has");
  if (*shared + *more > kMaxTableKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key has ", *shared + *more, " bytes; at most ", kMaxTableKeyBytes, " are read"));
  }
  key.resize(*shared);
  absl::StrAppend(&key, in.substr(0, *more));
  const absl::string_view content = in.substr(*more, *value);
  in.remove_prefix(*more + *value);
  return content;
}

// Hands the entries of a block to `take`, in order. The restart points only serve searches: they have to be there.
template <typename Take>
absl::Status ForEachEntry(absl::string_view block, Take take) {
  if (block.size() < 4) return Damaged("a block is too short");
  const uint64_t restarts = Fixed32At(block.substr(block.size() - 4));
  if (restarts > (block.size() - 4) / 4) return Damaged("a block has more restart points than bytes");
  absl::string_view entries = block.substr(0, block.size() - 4 * (restarts + 1));
  std::string key;
  while (!entries.empty()) {
    LS_ASSIGN_OR_RETURN(const absl::string_view value, TakeEntry(entries, key));
    LS_RETURN_IF_ERROR(take(key, value));
  }
  return absl::OkStatus();
}

absl::StatusOr<Table> Parse(absl::string_view file) {
  if (file.size() > kMaxTableBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", file.size(), " bytes; at most ", kMaxTableBytes, " are read"));
  }
  if (file.size() < kFooterBytes) {
    return Damaged(absl::StrCat("it has ", file.size(), " bytes; expected at least ", kFooterBytes));
  }
  absl::string_view footer = file.substr(file.size() - kFooterBytes);
  const uint64_t magic = Fixed32At(footer.substr(40)) | static_cast<uint64_t>(Fixed32At(footer.substr(44))) << 32;
  if (magic != kTableMagic) return Damaged("it does not end as the index of a TensorFlow V2 checkpoint does");
  footer.remove_suffix(sizeof(kTableMagic));
  LS_ASSIGN_OR_RETURN(const BlockHandle metadata, TakeHandle(footer));
  LS_RETURN_IF_ERROR(ReadBlock(file, metadata).status());  // nothing is known of what may stand in it
  LS_ASSIGN_OR_RETURN(const BlockHandle place, TakeHandle(footer));
  LS_ASSIGN_OR_RETURN(const absl::string_view index, ReadBlock(file, place));
  Table table;
  size_t key_bytes = 0;
  uint64_t end = 0;  // of the block before: none is read twice
  LS_RETURN_IF_ERROR(ForEachEntry(index, [&](const std::string&, absl::string_view in) -> absl::Status {
    LS_ASSIGN_OR_RETURN(const BlockHandle handle, TakeHandle(in));
    if (handle.offset < end) return Damaged(absl::StrCat("its blocks overlap, or are not in order: ", At(handle)));
    LS_ASSIGN_OR_RETURN(const absl::string_view block, ReadBlock(file, handle));
    end = handle.offset + handle.size + kBlockTrailerBytes;
    return ForEachEntry(block, [&](const std::string& key, absl::string_view value) -> absl::Status {
      if (!table.empty() && key <= table.rbegin()->first) return Damaged("its keys are not in order");
      key_bytes += key.size();
      if (key_bytes > kMaxTableBytes) {
        return absl::InvalidArgumentError(absl::StrCat("its keys have more than ", kMaxTableBytes, " bytes"));
      }
      if (table.size() == kMaxTableEntries) {
        return absl::InvalidArgumentError(
            absl::StrCat("it has more entries than are read, at most ", kMaxTableEntries));
      }
      table.emplace_hint(table.end(), key, value);
      return absl::OkStatus();
    });
  }));
  return table;
}

}  // namespace

absl::StatusOr<Table> ParseTable(absl::string_view bytes, absl::string_view file) {
  absl::StatusOr<Table> table = Parse(bytes);
  if (table.ok()) return table;
  return absl::Status(table.status().code(), absl::StrCat("TensorFlow index ", file, ": ", table.status().message()));
}

}  // namespace lockstep
