// Makes the header of an npy file (NumPy's format, version 1.0).
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_WORKER_DATA_NPY_HEADER_H_
#define LOCKSTEP_WORKER_DATA_NPY_HEADER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace lockstep::worker {

// The header of a row-major, little-endian array; its size is a multiple of 64 bytes. Unimplemented for a type that
// NumPy does not have.
absl::StatusOr<std::string> NpyHeader(DType dtype, const Shape& shape);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_NPY_HEADER_H_
