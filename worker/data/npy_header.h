// What an npy file (NumPy's format, version 1.0) begins with, in front of the elements.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_WORKER_DATA_NPY_HEADER_H_
#define LOCKSTEP_WORKER_DATA_NPY_HEADER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace lockstep::worker {

// Of a row-major array on a little-endian machine; a multiple of 64 bytes. Unimplemented for a type that NumPy has not.
absl::StatusOr<std::string> NpyHeader(DType dtype, const Shape& shape);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_NPY_HEADER_H_
