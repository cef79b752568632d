// A zip archive with stored or deflated members, read by its central directory. The archive is not trusted: offsets,
// sizes and checksums are checked against the file.
//
// Archives of more than 4 GiB or 65,534 members (zip64) are refused; members written with zip64 sizes in their local
// headers, as numpy does, are not.
//
// Threading: immutable once opened; each ByteSource that it opens belongs to one thread.
#ifndef LOCKSTEP_WORKER_DATA_ZIP_FILE_H_
#define LOCKSTEP_WORKER_DATA_ZIP_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/storage/storage.h"
#include "common/sync/pulse.h"
#include "worker/data/byte_source.h"

namespace lockstep::worker {

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  int64_t stored_bytes = 0;
  int64_t size = 0;
  int64_t header_offset = 0;
};

class ZipFile {
 public:
  // NotFound, PermissionDenied, InvalidArgument (not a zip, zip64, encrypted, another compression method), DataLoss
  // (the directory contradicts the file). Messages name the file and the byte.
  static absl::StatusOr<ZipFile> Open(const std::string& path);

  // In the order of the directory; names are unique.
  const std::vector<ZipMember>& members() const { return members_; }

  // The bytes of a member. Reading to the end checks size and checksum.
  absl::StatusOr<ByteSource> OpenMember(const ZipMember& member, Pulse* pulse) const;

 private:
  ZipFile(std::string path, std::shared_ptr<const ReadableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status ReadDirectory();
  absl::Status ParseDirectory(const std::string& bytes, int entries);
  absl::Status ReadInto(int64_t offset, absl::Span<char> out, absl::string_view what) const;
  absl::StatusOr<std::string> ReadPart(int64_t offset, int64_t size, absl::string_view what) const;
  absl::Status Bad(int64_t offset, absl::string_view message) const;
  absl::Status Lost(int64_t offset, absl::string_view message) const;

  std::string path_;
  std::shared_ptr<const ReadableFile> file_;
  std::vector<ZipMember> members_;
  int64_t directory_offset_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_ZIP_FILE_H_
