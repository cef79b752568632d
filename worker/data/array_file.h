// An array read from an IDX or npy file, plain or gzipped: its element type, its shape, and the elements in row-major
// order and the machine's byte order. The format is told by the content, never by the name. Files are read, not mapped:
// whoever truncates one must not kill the process.
//
// Threading: immutable once read.
#ifndef LOCKSTEP_WORKER_DATA_ARRAY_FILE_H_
#define LOCKSTEP_WORKER_DATA_ARRAY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/sync/pulse.h"
#include "common/tensor/tensor.h"
#include "protos/job.pb.h"
#include "worker/data/byte_source.h"

namespace lockstep::worker {

struct ArrayFile {
  std::string path;
  Tensor array;             // rank >= 1, at least one element
  int64_t data_offset = 0;  // of the first element, in the decompressed file
  bool compressed = false;

  // "FILE: byte 8: " or "FILE: byte 8 of the decompressed data: ", the beginning of a message about that place.
  std::string At(int64_t offset) const;
};

// Reads the array at `path`. NotFound, PermissionDenied, InvalidArgument (no such format, type or shape, bytes left
// over), DataLoss (truncated, corrupt), ResourceExhausted (more elements than `memory_limit_bytes` hold; nothing was
// allocated). Messages name the file and the byte. Advances `pulse` (may be null) by the bytes read.
absl::StatusOr<ArrayFile> ReadArrayFile(const std::string& path, job::DataFiles::Format format,
                                        int64_t memory_limit_bytes, Pulse* pulse = nullptr);

// As ReadArrayFile for bytes that are open already, from their beginning to their end.
absl::StatusOr<ArrayFile> ReadArray(ByteSource& source, job::DataFiles::Format format, int64_t memory_limit_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_ARRAY_FILE_H_
