// Parses the headers of IDX and npy files: element type, shape and byte order.
//
// Threading: thread-compatible: a call needs exclusive use of its ByteSource.
#ifndef LOCKSTEP_WORKER_DATA_ARRAY_HEADER_H_
#define LOCKSTEP_WORKER_DATA_ARRAY_HEADER_H_

#include <array>
#include <cstddef>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "worker/data/byte_source.h"

namespace lockstep::worker {

struct ArrayHeader {
  DType dtype = DType::kU8;
  Shape shape;
  bool big_endian = false;
};

// The first bytes of a file, which identify its format.
using Magic = std::array<std::byte, 4>;

bool IsIdxMagic(const Magic& magic);
bool IsNpyMagic(const Magic& magic);

// Reads the rest of an IDX header after its magic (0, 0, element type, rank): a big-endian uint32 per dimension.
absl::StatusOr<ArrayHeader> ReadIdxHeader(const Magic& magic, ByteSource& source);

// Reads the rest of an npy header (versions 1 to 3) after its first four bytes.
absl::StatusOr<ArrayHeader> ReadNpyHeader(ByteSource& source);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_ARRAY_HEADER_H_
