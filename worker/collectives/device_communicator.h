// Reduces gradient buckets and broadcasts states in device memory, by work that the device executes itself (NCCL). It
// is paired with the host Communicator of the same generation, which carries everything in host memory: control words,
// the parts of a state that live on the host, and aborts. Communicator::on_device() returns it.
//
// A call only queues work. The reduction, the conversion of the sums and all copies go into a stream of the
// communicator, which starts a bucket after the event `filled`. The compute stream goes on with backward at once; only
// the host waits for reductions, at the gate of the step:
//
//   compute stream       ── quantise b ─┬─ filled ── backward ... ── quantise c ─┬─ filled ──▶
//   communicator stream                 └▶ reduce b, convert, gather             └▶ reduce c ... ──▶ handles end
//   host                                                        waits for all handles, decides, queues the update ──▶
//
// Invariants
//   * Every rank makes the same calls in the same order, with the same Tag, sizes and tensors.
//   * A handle ends, with or without success, once the communicator's stream will not touch the call's memory any more.
//     Until then neither the host nor another stream accesses that memory, except that all may read what a root sends.
//     Work queued in any stream after a handle ended with OK sees the call's result; it needs no event.
//   * The communicator chooses how a bucket is cut among ranks: integer sums do not depend on it. Float sums are the
//     same on every rank; they may depend on how the ranks are connected.
//   * A failure here aborts the paired host communicator, which tells every rank. When the host communicator fails
//     first, this one is aborted within a second.
//   * The padding between `tensors` may be reduced too, with any result.
//   * The communicator neither reads control words nor makes decisions: the host decides whether a reduced bucket
//     counts.
//
// Threading: Reduce and Broadcast are called by the device's owner thread, the only thread that queues work. Any thread
// may wait for handles. Abort is thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_DEVICE_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_DEVICE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/collectives/communicator.h"
#include "worker/device/device.h"
#include "worker/device/step_math.h"

namespace lockstep::worker {

// One bucket of an attempt, in device memory. All pointers stay valid until the handle ends.
struct DeviceBucket {
  // The bucket's tensors, with offsets from its start; their indices select from `exponents`.
  const device::TensorTable* tensors = nullptr;
  int64_t size = 0;  // elements, padding included; the bucket starts at a multiple of 256 bytes
  // This rank's contribution to exact sums; unspecified afterwards. Null for native float sums.
  int64_t* sums = nullptr;
  const int32_t* exponents = nullptr;  // as in StepMath::Dequantize; the same on every rank, written before `filled`
  // Receives the reduced gradient, the same on every rank. With native sums first holds this rank's contribution.
  float* floats = nullptr;
};

// The number of calls in flight from which on another call waits for the oldest one. A broadcast counts as one call per
// kDevicePieceBytes. More calls could fill the device's launch queue; a launch then blocks, and with it the thread.
inline constexpr size_t kDeviceCallsUnderWay = 32;
inline constexpr size_t kDevicePieceBytes = size_t{8} << 20;

class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  // Queues the reduction of one bucket. With `sums`, the integers are summed over the ranks and converted to `floats`
  // by StepMath::Dequantize, on this rank or another; without, `floats` are summed. `filled` is an event that the
  // caller recorded in a stream of the same device after the writes of sums, exponents and floats; its latest recording
  // counts, and the caller may record it again as soon as this returns.
  //
  // Blocks only when kDeviceCallsUnderWay calls are in flight, until one of them ends or the communicator breaks. A
  // caller that wants to report that it waits for a peer waits for an older handle first. A call that cannot be queued
  // returns a handle that has ended with Aborted.
  //
  // The handle's Done and Wait test an event behind the bucket in the communicator's stream, and the library's errors.
  // An error breaks the communicator on every rank, as if this rank had aborted it.
  virtual Handle Reduce(Tag tag, const DeviceBucket& bucket, device::Event& filled) = 0;

  // Queues a broadcast of `bytes` bytes from `memory` of rank `root` to `memory` of every other rank, in device memory.
  // A rank that takes part but keeps nothing passes null; the root never does. `filled` is recorded after the root's
  // writes to that memory, and on other ranks after all accesses to it. Otherwise as Reduce.
  virtual Handle Broadcast(Tag tag, int root, std::byte* memory, size_t bytes, device::Event& filled) = 0;

  // Makes the device abandon the calls in flight, so that the stream drains; their results are unspecified. The paired
  // Communicator's Abort calls it on every rank, from any thread, with the first cause. All handles, pending or new,
  // end with Aborted and that cause once the stream is past them. Idempotent, never blocks.
  virtual void Abort(const absl::Status& cause) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_DEVICE_COMMUNICATOR_H_
