// The rows of a table of StepMath in device memory, and the parts that tensors are cut into.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_UPLOADED_ROWS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_UPLOADED_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/device/cuda/step_kernels.h"

namespace lockstep::device::cuda {

template <typename Row>
class UploadedRows {
 public:
  // Waits until the rows are there. ResourceExhausted names the size.
  static absl::StatusOr<UploadedRows> Upload(absl::Span<const Row> rows) {
    UploadedRows result;
    LS_ASSIGN_OR_RETURN(result.buffer_, NewDeviceBuffer(rows.size() * sizeof(Row)));
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, NewCudaStream());
    LS_RETURN_IF_ERROR(stream->CopyToDevice(result.buffer_->address(), reinterpret_cast<const std::byte*>(rows.data()),
                                            rows.size() * sizeof(Row)));
    LS_RETURN_IF_ERROR(stream->Synchronize());
    result.count_ = static_cast<int64_t>(rows.size());
    return result;
  }
  Row* get() const { return reinterpret_cast<Row*>(buffer_->address()); }
  int64_t count() const { return count_; }
  LaunchShape one_block_each() const { return {.blocks = {static_cast<unsigned>(count_)}, .threads = {kStepThreads}}; }

 private:
  std::unique_ptr<Buffer> buffer_;
  int64_t count_ = 0;
};

// Calls fn(begin, size) for the parts of `size` elements, `most` in each but the last.
template <typename F>
void ForEachPart(int64_t size, int64_t most, F fn) {
  for (int64_t at = 0; at < size; at += most) fn(at, static_cast<int32_t>(std::min(most, size - at)));
}

// Calls fn(offset, size) for the chunks of `size` elements.
template <typename F>
void ForEachChunk(int64_t size, F fn) {
  ForEachPart(size, kChunk, fn);
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_UPLOADED_ROWS_H_
