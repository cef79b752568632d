// Sequential reading of a file, gzipped or plain, or of a member of an archive: decompresses, and tracks the byte
// offset for error messages.
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

namespace lockstep::worker {

// The decompressed bytes behind a ByteSource.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` and returns the number of bytes, less than all only at the end. DataLoss when the bytes are corrupt;
  // the message does not name the place. REQUIRES: `out` has at most 8 MiB.
  virtual absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out) = 0;
};

class ByteSource {
 public:
  // The largest compression ratio of deflate.
  static constexpr int64_t kMostDeflated = 1032;

  // Opens a regular file; reading advances `pulse`, which may be null. NotFound, PermissionDenied, InvalidArgument for
  // a directory.
  static absl::StatusOr<ByteSource> Open(const std::string& path, Pulse* pulse);

  // Reads `stream`, called `name` in messages. `stored_bytes`: its size before decompression.
  ByteSource(std::string name, std::unique_ptr<ByteStream> stream, int64_t stored_bytes, bool compressed, Pulse* pulse);

  ByteSource(ByteSource&&) = default;
  ByteSource& operator=(ByteSource&&) = default;

  // Fills `out`; `what` names it in messages. DataLoss when the bytes end early or are corrupt.
  absl::Status Read(absl::Span<std::byte> out, absl::string_view what);

  // As Read, but stops at the end: returns the number of bytes that were read.
  absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out);

  // OK at the end; InvalidArgument when bytes are left, DataLoss when the end of the compressed data is corrupt.
  absl::Status ExpectEnd();

  // An upper bound of the bytes that can follow, by the stored size and kMostDeflated.
  int64_t MostBytes() const { return compressed_ ? stored_bytes_ * kMostDeflated : stored_bytes_ - offset_; }

  // The number of decompressed bytes read so far.
  int64_t offset() const { return offset_; }
  bool compressed() const { return compressed_; }
  const std::string& name() const { return name_; }

  // "FILE: byte 8: " for an offset in the decompressed bytes.
  std::string At(int64_t offset) const;
  // InvalidArgument, with a message that begins with At(offset).
  absl::Status Bad(int64_t offset, absl::string_view message) const;

 private:
  std::string name_;
  std::unique_ptr<ByteStream> stream_;
  int64_t stored_bytes_ = 0;
  int64_t offset_ = 0;
  bool compressed_ = false;
  Pulse* pulse_ = nullptr;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BYTE_SOURCE_H_
