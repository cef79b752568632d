// A state of the job in host memory: all tensors of the layout in one buffer, row-major, each at a multiple of 64
// bytes; an alias shares the memory of the tensor that it names. Snapshots are such copies, digests and shares are
// computed from them, and a replica's own state has one (replica_state.h).
//
// Invariants
//   * Offsets depend on the layout alone and padding is zero, so two buffers are equal byte by byte exactly if the
//     states are.
//
// Threading: thread-compatible. A snapshot's copy is immutable once it is complete.
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
  // The size of the buffer in bytes.
  static absl::StatusOr<int64_t> BytesOf(const StateLayout& layout);
  // Allocates a zero-filled state with all pages touched. ResourceExhausted names the size.
  static absl::StatusOr<HostState> Create(StateLayout layout);
  // Uses `memory`. REQUIRES: it is zero-filled, visible to the host, and has BytesOf(layout) bytes.
  static absl::StatusOr<HostState> In(StateLayout layout, std::unique_ptr<device::Buffer> memory);

  HostState(HostState&&) = default;
  HostState& operator=(HostState&&) = default;

  const StateLayout& layout() const { return layout_; }
  // The whole buffer, padding included.
  absl::Span<std::byte> bytes() { return {buffer_->address(), buffer_->size()}; }
  absl::Span<const std::byte> bytes() const { return {buffer_->address(), buffer_->size()}; }
  // A tensor's offset in the buffer.
  size_t offset(int index) const { return offsets_[index]; }
  // A tensor's bytes.
  absl::Span<std::byte> tensor(int index) { return bytes().subspan(offsets_[index], sizes_[index]); }
  absl::Span<const std::byte> tensor(int index) const { return bytes().subspan(offsets_[index], sizes_[index]); }
  absl::Span<float> floats(int index);
  int32_t& exponent(int index);
  int64_t& step();
  int64_t step() const;

  // Copies another state. REQUIRES: the same layout.
  void CopyFrom(const HostState& other);
  // Copies the tensors of `initial`, one per entry of the layout in order, into the state. InvalidArgument when a type
  // or shape differs.
  absl::Status Load(absl::Span<const Tensor> initial);

  // The digests of common/digest/state_digest.h, in the order of the layout, computed on up to `threads` threads.
  // Advances `pulse` (may be null) by the bytes. Blocks.
  StateDigests Digests(Pulse* pulse = nullptr, int threads = 1) const;
  // The digest of the whole state.
  std::string Digest(Pulse* pulse = nullptr, int threads = 1) const { return Digests(pulse, threads).state; }

  // The layout as tensors of a checkpoint.
  std::vector<CheckpointTensor> CheckpointLayout() const;
  // The pieces of memory that form bytes [offset, offset + size) of a share's stream. REQUIRES, here and below: the
  // share is of a plan over CheckpointLayout(), and the range lies within it.
  std::vector<absl::string_view> ViewShare(const Share& share, uint64_t offset, uint64_t size) const;
  // Copy a part of the share's stream out of the state, or into it.
  void ReadShare(const Share& share, uint64_t offset, absl::Span<char> out) const;
  void WriteShare(const Share& share, uint64_t offset, absl::Span<const char> in);

 private:
  explicit HostState(StateLayout layout) : layout_(std::move(layout)) {}

  // Computes the offsets; returns the size of the buffer.
  absl::StatusOr<int64_t> Place();

  StateLayout layout_;
  std::vector<size_t> offsets_;
  std::vector<size_t> sizes_;
  int step_index_ = -1;
  std::unique_ptr<device::Buffer> buffer_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_HOST_STATE_H_
