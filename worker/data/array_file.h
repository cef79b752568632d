// An array read from an IDX or npy file, plain or gzipped: its element type, its shape, and the elements in row-major
// order and native byte order. The content determines the format, never the file name. Files are read, not mapped, so
// that truncating one later cannot kill the process with SIGBUS.
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

  // The beginning of a message about an offset: "FILE: byte 8: " or "FILE: byte 8 of the decompressed data: ".
  std::string At(int64_t offset) const;
};

// Reads the array at `path`. NotFound, PermissionDenied, InvalidArgument (unsupported format, type or shape, trailing
// bytes), DataLoss (truncated, corrupt), ResourceExhausted (larger than `memory_limit_bytes`, found before allocating).
// Messages name the file and the byte. Advances `pulse` (may be null) by the bytes read. Blocks on the file system.
absl::StatusOr<ArrayFile> ReadArrayFile(const std::string& path, job::DataFiles::Format format,
                                        int64_t memory_limit_bytes, Pulse* pulse = nullptr);

// As ReadArrayFile, for an open source at its beginning; reads to its end.
absl::StatusOr<ArrayFile> ReadArray(ByteSource& source, job::DataFiles::Format format, int64_t memory_limit_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_ARRAY_FILE_H_
