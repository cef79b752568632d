// A state of the job in host memory: all tensors of the layout in one buffer, row-major, each at a multiple of 64
// bytes, an alias at the place of what it names. Snapshots are such copies; digests and shares read them tensor by
// tensor; a replica's own state has one (replica_state.h).
//
// Invariants
//   * Offsets are a function of the layout alone, so that two replicas' buffers are equal byte by byte (padding is
//     zero) exactly when their states are.
// Threading: thread-compatible. A snapshot's copy is immutable once it was taken.
#ifndef LOCKSTEP_WORKER_STEP_HOST_STATE_H_
#define LOCKSTEP_WORKER_STEP_HOST_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/state_digest.h"
#include "common/graph/state_layout.h"
#include "common/sync/pulse.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"

namespace lockstep::worker {

class HostState {
 public:
  // Bytes of the buffer.
  static absl::StatusOr<int64_t> BytesOf(const StateLayout& layout);
  // Zero-filled, every page touched. ResourceExhausted names the size.
  static absl::StatusOr<HostState> Create(StateLayout layout);
  // In memory that is zero-filled, visible to the host and of BytesOf(layout).
  static absl::StatusOr<HostState> In(StateLayout layout, std::unique_ptr<device::Buffer> memory);

  HostState(HostState&&) = default;
  HostState& operator=(HostState&&) = default;

  const StateLayout& layout() const { return layout_; }
  // The whole buffer, padding included.
  absl::Span<std::byte> bytes() { return {buffer_->address(), buffer_->size()}; }
  absl::Span<const std::byte> bytes() const { return {buffer_->address(), buffer_->size()}; }
  // Where a tensor begins in the buffer.
  size_t offset(int index) const { return offsets_[index]; }
  // One tensor's bytes.
  absl::Span<std::byte> tensor(int index) { return bytes().subspan(offsets_[index], sizes_[index]); }
  absl::Span<const std::byte> tensor(int index) const { return bytes().subspan(offsets_[index], sizes_[index]); }
  absl::Span<float> floats(int index);
  int32_t& exponent(int index);
  int64_t& step();
  int64_t step() const;

  // Copies another state of the same layout.
  void CopyFrom(const HostState& other);
  // Puts the tensors of `initial` (one per entry of the layout, in order) in place. InvalidArgument when they differ in
  // type or shape.
  absl::Status Load(absl::Span<const Tensor> initial);

  // The digests of common/digest/state_digest.h, in the order of the layout, made on up to `threads` threads. Advances
  // `pulse` (may be null) by the bytes.
  StateDigests Digests(Pulse* pulse = nullptr, int threads = 1) const;
  // That of the whole state.
  std::string Digest(Pulse* pulse = nullptr, int threads = 1) const { return Digests(pulse, threads).state; }

  // The layout in the words of checkpoints.
  std::vector<CheckpointTensor> CheckpointLayout() const;
  // Where a part of a share's stream lies. REQUIRES, of this and what follows: the share is of a plan over
  // CheckpointLayout(); offset + size stays within it.
  std::vector<absl::string_view> ViewShare(const Share& share, uint64_t offset, uint64_t size) const;
  // Copies a part of the stream out of the state, or into it.
  void ReadShare(const Share& share, uint64_t offset, absl::Span<char> out) const;
  void WriteShare(const Share& share, uint64_t offset, absl::Span<const char> in);

 private:
  explicit HostState(StateLayout layout) : layout_(std::move(layout)) {}

  // Places the tensors; returns the buffer's bytes.
  absl::StatusOr<int64_t> Place();

  StateLayout layout_;
  std::vector<size_t> offsets_;
  std::vector<size_t> sizes_;
  int step_index_ = -1;
  std::unique_ptr<device::Buffer> buffer_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_HOST_STATE_H_
