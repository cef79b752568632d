// A file read from its beginning, decompressed on the way if it is gzipped, that always knows at which byte it is.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_BYTE_SOURCE_H_
#define LOCKSTEP_WORKER_DATA_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/sync/pulse.h"

struct gzFile_s;

namespace lockstep::worker {

class ByteSource {
 public:
  // Opens a regular file; what is read of it advances `pulse`, which may be null. NotFound, PermissionDenied,
  // InvalidArgument for a directory.
  static absl::StatusOr<ByteSource> Open(const std::string& path, Pulse* pulse);

  ByteSource(ByteSource&&) = default;
  ByteSource& operator=(ByteSource&&) = default;

  // Fills `out`; `what` names it in messages. DataLoss when the file ends before, or its compressed data is corrupt.
  absl::Status Read(absl::Span<std::byte> out, absl::string_view what);

  // OK when everything was read; InvalidArgument when bytes are left, DataLoss when the compressed data ends badly.
  absl::Status ExpectEnd();

  // No more than this many bytes can follow: the size of a plain file, 1,032 times that of a compressed one.
  int64_t MostBytes() const { return compressed_ ? file_size_ * 1032 : file_size_ - offset_; }

  // Bytes read so far, decompressed.
  int64_t offset() const { return offset_; }
  bool compressed() const { return compressed_; }

  // "FILE: byte 8: " for a place in the decompressed bytes.
  std::string At(int64_t offset) const;
  // InvalidArgument at the given place.
  absl::Status Bad(int64_t offset, absl::string_view message) const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  ByteSource(std::string path, gzFile_s* file) : path_(std::move(path)), file_(file) {}

  // Reads up to out.size() bytes; fewer only at the end.
  absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out);

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  int64_t file_size_ = 0;
  int64_t offset_ = 0;
  bool compressed_ = false;
  Pulse* pulse_ = nullptr;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BYTE_SOURCE_H_
