#include "worker/data/zip_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_files.h"
#include "worker/data/zip_stream.h"

namespace lockstep::worker {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr int64_t kEndBytes = 22;
constexpr size_t kEntryBytes = 46;
constexpr int64_t kLocalBytes = 30;
constexpr int64_t kLargestDirectory = 64 << 20;
constexpr char kNoZip64[] =
    "a zip64 archive (more than 4 GiB, or 65,535 members) is not supported; save its arrays as .npy files";

// A little-endian number of `count` bytes.
uint32_t LittleEndianAt(absl::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;) value = (value << 8) | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

}  // namespace

absl::StatusOr<ZipFile> ZipFile::Open(const std::string& path) {
  // Says what is wrong with the path, and waits for no pipe.
  LS_RETURN_IF_ERROR(ByteSource::Open(path, /*pulse=*/nullptr).status());
  LS_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, OpenLocalFile(path));
  ZipFile zip(path, std::move(file));
  LS_RETURN_IF_ERROR(zip.ReadDirectory());
  return zip;
}

absl::Status ZipFile::Bad(int64_t offset, absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": byte ", offset, ": ", message));
}

absl::Status ZipFile::Lost(int64_t offset, absl::string_view message) const {
  return absl::DataLossError(absl::StrCat(path_, ": byte ", offset, ": ", message, "; copy the file again"));
}

absl::Status ZipFile::ReadInto(int64_t offset, absl::Span<char> out, absl::string_view what) const {
  if (offset < 0 || static_cast<int64_t>(out.size()) > static_cast<int64_t>(file_->size()) - offset) {
    return Lost(offset, absl::StrCat(what, " reaches beyond the end of the file"));
  }
  return file_->ReadAt(static_cast<uint64_t>(offset), out);
}

absl::StatusOr<std::string> ZipFile::ReadPart(int64_t offset, int64_t size, absl::string_view what) const {
  if (size > static_cast<int64_t>(file_->size())) return Lost(offset, absl::StrCat(what, " is larger than the file"));
  std::string bytes(static_cast<size_t>(size), '\0');
  LS_RETURN_IF_ERROR(ReadInto(offset, absl::MakeSpan(bytes.data(), bytes.size()), what));
  return bytes;
}

// The archive ends with a record that says where its directory is, and a comment.
absl::Status ZipFile::ReadDirectory() {
  const int64_t size = static_cast<int64_t>(file_->size());
  const int64_t tail_bytes = std::min(size, kEndBytes + 0xffff);
  LS_ASSIGN_OR_RETURN(const std::string tail, ReadPart(size - tail_bytes, tail_bytes, "its end"));
  int64_t at = tail_bytes - kEndBytes;
  for (; at >= 0; --at) {
    const auto place = static_cast<size_t>(at);
    if (LittleEndianAt(tail, place, 4) == kEndSignature &&
        LittleEndianAt(tail, place + 20, 2) == tail_bytes - at - kEndBytes)
      break;
  }
  if (at < 0) return Lost(size, "a zip archive ends with its directory, and none is there");
  const absl::string_view end = absl::string_view(tail).substr(static_cast<size_t>(at));
  const int64_t end_offset = size - tail_bytes + at;
  const uint32_t entries = LittleEndianAt(end, 10, 2);
  const uint32_t directory_bytes = LittleEndianAt(end, 12, 4);
  const uint32_t directory_offset = LittleEndianAt(end, 16, 4);
  if (entries == 0xffff || directory_bytes == 0xffffffff || directory_offset == 0xffffffff) {
    return Bad(end_offset, kNoZip64);
  }
  if (LittleEndianAt(end, 4, 2) != 0 || LittleEndianAt(end, 6, 2) != 0 || LittleEndianAt(end, 8, 2) != entries) {
    return Bad(end_offset, "an archive in several parts is not supported");
  }
  if (int64_t{directory_offset} + directory_bytes != end_offset) {
    return Lost(end_offset, absl::StrCat("the directory is said to be ", directory_bytes, " bytes at ",
                                         directory_offset, ", which does not end here"));
  }
  if (directory_bytes > kLargestDirectory) return Bad(end_offset, "the directory is larger than 64 MiB");
  directory_offset_ = directory_offset;
  LS_ASSIGN_OR_RETURN(const std::string directory, ReadPart(directory_offset, directory_bytes, "the directory"));
  return ParseDirectory(directory, static_cast<int>(entries));
}

absl::Status ZipFile::ParseDirectory(const std::string& bytes, int entries) {
  std::set<std::string> names;
  size_t at = 0;
  for (int i = 0; i < entries; ++i) {
    const int64_t place = directory_offset_ + static_cast<int64_t>(at);
    if (bytes.size() - at < kEntryBytes || LittleEndianAt(bytes, at, 4) != kEntrySignature) {
      return Lost(place, absl::StrCat("entry ", i, " of ", entries, " of the directory is missing"));
    }
    const size_t name_bytes = LittleEndianAt(bytes, at + 28, 2);
    const size_t rest = name_bytes + LittleEndianAt(bytes, at + 30, 2) + LittleEndianAt(bytes, at + 32, 2);
    if (bytes.size() - at - kEntryBytes < rest) return Lost(place, "the directory ends in an entry");
    ZipMember member;
    member.name = bytes.substr(at + kEntryBytes, name_bytes);
    member.crc = LittleEndianAt(bytes, at + 16, 4);
    member.stored_bytes = LittleEndianAt(bytes, at + 20, 4);
    member.size = LittleEndianAt(bytes, at + 24, 4);
    member.header_offset = LittleEndianAt(bytes, at + 42, 4);
    const uint32_t method = LittleEndianAt(bytes, at + 10, 2);
    member.deflated = method == 8;
    if ((LittleEndianAt(bytes, at + 8, 2) & 1) != 0) return Bad(place, "an encrypted member is not supported");
    if (method != 0 && method != 8) {
      return Bad(place, absl::StrCat("compression method ", method, " is not supported; stored and deflated are"));
    }
    for (const int64_t number : {member.stored_bytes, member.size, member.header_offset}) {
      if (number == 0xffffffff) return Bad(place, kNoZip64);
    }
    if (!member.deflated && member.stored_bytes != member.size) {
      return Lost(place, "a stored member has two sizes");
    }
    if (member.header_offset + kLocalBytes + member.stored_bytes > directory_offset_) {
      return Lost(place, "a member reaches into the directory");
    }
    if (!names.insert(member.name).second) return Bad(place, "two members have one name");
    members_.push_back(std::move(member));
    at += kEntryBytes + rest;
  }
  if (at == bytes.size()) return absl::OkStatus();
  return Lost(directory_offset_ + static_cast<int64_t>(at), "the directory has bytes after its last entry");
}

absl::StatusOr<ByteSource> ZipFile::OpenMember(const ZipMember& member, Pulse* pulse) const {
  std::array<char, kLocalBytes> bytes{};
  LS_RETURN_IF_ERROR(ReadInto(member.header_offset, absl::MakeSpan(bytes), "a member"));
  const absl::string_view header(bytes.data(), bytes.size());
  // Sizes are those of the directory: here they may stand behind the data, or in an extra field.
  if (LittleEndianAt(header, 0, 4) != kLocalSignature || LittleEndianAt(header, 8, 2) != (member.deflated ? 8u : 0u)) {
    return Lost(member.header_offset, "the header of a member is not that of the directory");
  }
  const int64_t name_bytes = LittleEndianAt(header, 26, 2);
  const int64_t data = member.header_offset + kLocalBytes + name_bytes + LittleEndianAt(header, 28, 2);
  LS_ASSIGN_OR_RETURN(const std::string name, ReadPart(member.header_offset + kLocalBytes, name_bytes, "a name"));
  if (name != member.name) return Lost(member.header_offset, "the name of a member is not that of the directory");
  if (data + member.stored_bytes > directory_offset_) {
    return Lost(member.header_offset, "a member reaches into the directory");
  }
  return ByteSource(absl::StrCat(path_, ": ", member.name),
                    MakeZipStream(file_, {.offset = data,
                                          .stored_bytes = member.stored_bytes,
                                          .size = member.size,
                                          .crc = member.crc,
                                          .deflated = member.deflated}),
                    member.stored_bytes, member.deflated, pulse);
}

}  // namespace lockstep::worker
