// A zip archive with its members stored or deflated, read by its directory. Nothing that the archive says about itself
// is taken on trust: places, sizes and checksums are held against the file.
//
// Archives of more than 4 GiB or 65,534 members (zip64) are refused; members written with zip64 sizes in their local
// headers, as numpy does, are not.
//
// Threading: immutable once opened; each source that it opens belongs to one thread.
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
  // NotFound, PermissionDenied, InvalidArgument (no zip, zip64, encrypted, a method other than these two), DataLoss (a
  // directory that does not fit the file). Messages name file and byte.
  static absl::StatusOr<ZipFile> Open(const std::string& path);

  // In the order of the directory; no name twice.
  const std::vector<ZipMember>& members() const { return members_; }

  // The bytes of a member; whoever reads to the end learns whether they are those that were packed.
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
