// Collective operations between the ranks of one generation. Every rank makes the same calls in the same order. A call
// returns a handle and never waits for a peer; a thread of the communicator, or one that waits for a handle, does the
// work. Implementations: loopback and sockets in folders beside this one, deferred in worker/fakes; all pass one
// contract suite.
//
// Invariants
//   * A communicator belongs to one generation for its whole life and rejects data of any other generation.
//   * After the first failure or Abort every handle, pending or new, ends with Aborted and the first cause.
//   * A buffer may be read, written or freed again as soon as its handle is done, never before. (A handle that ended
//     with Aborted is done too: nothing touches the buffer any more, its content is unspecified.)
//   * Calls may run concurrently, so calls in flight must not share memory that one of them writes. They end in the
//     order in which they were made.
//   * Integer sums do not depend on the order of addition. Float sums are added in rank order, so they are reproducible
//     for the same number of ranks.
//
// Threading: the collectives are called by one thread; Abort, status and bytes_moved are thread-safe. The destructor
// aborts, and waits for the communicator's own threads.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/protocol/ids.h"
#include "worker/arithmetic/exact_addends.h"

namespace lockstep::worker {

// The step and attempt that a call serves. When ranks call with different tags at the same place in the sequence, the
// call ends with Aborted before any data is exchanged.
struct Tag {
  int64_t step = 0;
  uint32_t attempt = 0;

  friend bool operator==(const Tag&, const Tag&) = default;
};

// One enqueued call.
class Pending {
 public:
  virtual ~Pending() = default;
  // True when the call has ended, successfully or not. Never blocks.
  virtual bool Done() const = 0;
  // Blocks until the call has ended or `limit` has passed. DeadlineExceeded: still in flight, wait again. Otherwise the
  // status of the call: OK, Aborted, or InvalidArgument for impossible sizes.
  virtual absl::Status Wait(absl::Duration limit) = 0;
};
using Handle = std::shared_ptr<Pending>;

class DeviceCommunicator;

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual Generation generation() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place: rank r's block of block_bytes[r] bytes is copied to the same offset on every rank. Blocks fill `bytes`.
  virtual Handle AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) = 0;

  // out = the exact sums of all ranks' addends (SumExactly), the same on every rank. `runs` give the exponents; they
  // ascend and are the same on every rank, and elements between runs are unspecified. Each rank chooses for itself
  // whether it contributes integers or values. The addends are never modified.
  // REQUIRES: addends.size() == out.size(), runs within them.
  virtual Handle AllReduceExact(Tag tag, ExactAddends addends, absl::Span<float> out,
                                absl::Span<const ExactRun> runs) = 0;

  // Replaces `values` by the sum over all ranks, the same bits on every rank.
  virtual Handle AllReduceSum(Tag tag, absl::Span<int64_t> values) = 0;
  virtual Handle AllReduceSum(Tag tag, absl::Span<float> values) = 0;

  // Copies the bytes of rank `root` to every rank. `bytes` has the same size on every rank.
  virtual Handle Broadcast(Tag tag, int root, absl::Span<char> bytes) = 0;

  // The communicator for buffers in device memory (device_communicator.h), owned by this one. Null where only host
  // memory is reduced; null on all ranks or on none.
  virtual DeviceCommunicator* on_device() = 0;

  // Ends every pending and later call, here and on all other ranks, with Aborted and `cause`'s message (which other
  // ranks label as heard from this rank). Idempotent: the first cause stays. Never waits for the network.
  virtual void Abort(const absl::Status& cause) = 0;

  // OK until the first failure or Abort; afterwards Aborted with the first cause.
  virtual absl::Status status() const = 0;

  // Bytes sent and received so far: evidence of progress.
  virtual uint64_t bytes_moved() const = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_COMMUNICATOR_H_
