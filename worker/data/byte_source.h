// Bytes read from their beginning, decompressed on the way, that always know at which byte they are: a file, gzipped or
// not, or a member of an archive.
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

// Where the bytes of a source come from.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` from its beginning and returns how much of it; less than all only at the end. DataLoss says what is
  // wrong with the bytes, without their place. `out` has at most 8 MiB.
  virtual absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out) = 0;
};

class ByteSource {
 public:
  // No file holds fewer compressed bytes than this part of what it decompresses to.
  static constexpr int64_t kMostDeflated = 1032;

  // Opens a regular file; what is read of it advances `pulse`, which may be null. NotFound, PermissionDenied,
  // InvalidArgument for a directory.
  static absl::StatusOr<ByteSource> Open(const std::string& path, Pulse* pulse);

  // Reads `stream`, which `name` names in messages. `stored_bytes` is its size where it is stored.
  ByteSource(std::string name, std::unique_ptr<ByteStream> stream, int64_t stored_bytes, bool compressed, Pulse* pulse);

  ByteSource(ByteSource&&) = default;
  ByteSource& operator=(ByteSource&&) = default;

  // Fills `out`; `what` names it in messages. DataLoss when the bytes end before, or are corrupt.
  absl::Status Read(absl::Span<std::byte> out, absl::string_view what);

  // As Read, but the end may come before: returns how much of `out` was filled.
  absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out);

  // OK when everything was read; InvalidArgument when bytes are left, DataLoss when the compressed data ends badly.
  absl::Status ExpectEnd();

  // No more than this many bytes can follow: what is stored, 1,032 times that if it is compressed.
  int64_t MostBytes() const { return compressed_ ? stored_bytes_ * kMostDeflated : stored_bytes_ - offset_; }

  // Bytes read so far, decompressed.
  int64_t offset() const { return offset_; }
  bool compressed() const { return compressed_; }
  const std::string& name() const { return name_; }

  // "FILE: byte 8: " for a place in the decompressed bytes.
  std::string At(int64_t offset) const;
  // InvalidArgument at the given place.
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
