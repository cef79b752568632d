// Reduces buckets of gradients and spreads states where they lie: in the memory of a device, by work that the device
// does itself (NCCL). It stands beside the Communicator of the same generation, which goes on to carry everything that
// lies in host memory: control words, what of a state lives on the host alone, and the news of an abort.
// Communicator::on_device() leads to it.
//
// A call only queues: the bucket's reduction, the conversion of its sums and whatever copies it takes go into a stream
// of the communicator's own, which starts the bucket after `filled`. So the stream that computes goes on with
// backward at once, and nobody but the host, at the gate of the step, waits for a reduction:
//
//   computing ── quantise b ─┬─ filled ── backward ... ── quantise c ─┬─ filled ──────────▶ (the host queues the
//   update) communicator             └▶ reduce b, convert, gather             └▶ reduce c ... ──▶ handles host waits
//   for every handle, then decides
//
// Invariants
//   * Every rank makes the same calls in the same order, with the same Tag, sizes and tensors.
//   * A handle ends once the communicator's stream will not touch the call's memory any more, well or not. Until then
//     neither the host nor another stream reads or writes it (but for reads of what a root sends). Work that any stream
//     is given after a handle ended well finds the call's result: no event is needed.
//   * How a bucket is cut among ranks is the communicator's choice: integer sums do not depend on it. Float sums are
//     the same on every rank; they may depend on how the ranks are connected.
//   * A failure here aborts the paired host communicator, which tells every rank; and who made the pair aborts this one
//     within a second after the host communicator failed.
//   * The padding between `tensors` may be reduced too, with any result.
//   * Nothing here reads a control word or decides anything: whether the reduced bucket counts is for the host to say.
//
// Threading: Reduce and Broadcast are called by the device's owner thread, which alone queues work, also with StepMath.
// Handles may be waited for by any thread. Abort is thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_DEVICE_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_DEVICE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/collectives/communicator.h"
#include "worker/device/device.h"
#include "worker/device/step_math.h"

namespace lockstep::worker {

// One bucket of an attempt, in device memory. All of it stays alive and in place until the handle ends.
struct DeviceBucket {
  // The bucket's tensors, counted from its start; their indices are those of `exponents`.
  const device::TensorTable* tensors = nullptr;
  int64_t size = 0;  // elements of the run, padding included; its start is a multiple of 256 bytes
  // Exact: what this rank contributes; unspecified afterwards. Null for native sums.
  int64_t* sums = nullptr;
  const int32_t* exponents = nullptr;  // as StepMath::Dequantize; the same on every rank, written before `filled`
  // Afterwards the reduced gradient, the same on every rank. For native sums also what this rank contributes.
  float* floats = nullptr;
};

// How many calls may be under way, with handles that have not ended, before another one waits for the oldest of them. A
// broadcast counts as one call for every kDevicePieceBytes. More could fill a device's queue of launches, and a launch
// that blocks there holds up whatever else its thread does.
inline constexpr size_t kDeviceCallsUnderWay = 32;
inline constexpr size_t kDevicePieceBytes = size_t{8} << 20;

class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  // Queues one bucket: with `sums`, they are added up over the ranks and turned into `floats` by StepMath::Dequantize,
  // by this rank or another; without, `floats` are added up. `filled`: recorded by the caller, in a stream of the same
  // device, behind what writes sums, exponents and floats; its newest mark counts, and the caller may record it again
  // as soon as this returns. Waits for the device or for another rank only where kDeviceCallsUnderWay are under way
  // already, until one of them has ended or the communicator breaks: who shows that it waits for a peer waits for a
  // handle before. What cannot even be queued ends the handle at once, with Aborted, as communicator.h says.
  //
  // The handle: Done and Wait look at a mark behind the bucket in the communicator's stream and at the library's own
  // errors; a failure found there breaks the communicator on every rank, as if this rank had aborted it.
  virtual Handle Reduce(Tag tag, const DeviceBucket& bucket, device::Event& filled) = 0;

  // Queues a copy of `bytes` bytes at `memory` of rank `root`, in device memory, to `memory` of every other rank. Null
  // on a rank that takes part and keeps nothing: no memory of its caller is touched; never at the root. `filled`:
  // recorded behind what the root writes there, and elsewhere behind what reads or writes there. All else, also the
  // handle, is as with Reduce.
  virtual Handle Broadcast(Tag tag, int root, std::byte* memory, size_t bytes, device::Event& filled) = 0;

  // Makes the device give up what is under way, which lets the stream run empty; no rank gets anything from it. Called
  // by Abort of the Communicator, on every rank and from any thread, with the first cause; all handles, pending or new,
  // end with Aborted and that cause, once the stream is past them. Idempotent, never waits.
  virtual void Abort(const absl::Status& cause) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_DEVICE_COMMUNICATOR_H_
