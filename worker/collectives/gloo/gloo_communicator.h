// Ranks that are processes, over TCP: collectives of ours on Gloo's unbound buffers. Gloo's own collectives cannot be
// aborted while a peer is silent; waits on unbound buffers can.
//
// Reduce-scatter and all-gather are direct: each rank sends each other rank its piece at once, in staggered order.
// That moves the same bytes as a ring, has one hop instead of N - 1, and lets every piece be converted and forwarded
// as soon as it is complete.
//
// Invariants
//   * A peer that dies or closes is noticed on an idle connection as well: a watch stands on every pair.
//   * A peer that takes its time breaks nothing; one that cannot be reached is noticed without the chief (lifeline.h).
//   * No exception of Gloo leaves this folder.
//   * Destroying a communicator ends the calls its peers are still in: keep it until they have ended theirs.
//
// Threading: as communicator.h says. Each communicator owns a thread for its queue, one for its watch, two for its
// lifeline, and Gloo's own.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_GLOO_GLOO_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_GLOO_GLOO_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/rendezvous_store.h"

namespace lockstep::worker {

class Mesh;

struct GlooOptions {
  Generation generation;
  int rank = 0;
  int size = 1;
  std::string host = "127.0.0.1";  // the address to bind and to be found at
  // What the ranks are to people, by rank: "worker-1 at 10.0.0.2:4711". For notes of what is waited for; may be empty.
  std::vector<std::string> names = {};
  absl::Duration form_limit = absl::Seconds(20);
  // A call waits for its peers for as long as they take. Now and then they are asked for a sign of life: who does not
  // answer in time is named, and the communicator aborted.
  absl::Duration ask_every = absl::Seconds(30);
  absl::Duration answer_limit = absl::Seconds(30);
  // The largest piece in which a block travels. The same on every rank.
  int64_t piece_elements = 256 * 1024;
};

// Connects one rank to the others: made, run once by one thread, aborted by any.
class GlooForming {
 public:
  // `store` outlives this and is used only inside Run. Size 1 uses neither store nor sockets.
  GlooForming(GlooOptions options, RendezvousStore& store);
  ~GlooForming();
  GlooForming(const GlooForming&) = delete;
  GlooForming& operator=(const GlooForming&) = delete;

  // Blocks until all ranks are connected and have shown that they are of this generation. DeadlineExceeded when one
  // does not come within form_limit, Unavailable when one cannot be connected to, Aborted after Abort or when another
  // generation answers.
  absl::StatusOr<std::unique_ptr<Communicator>> Run();

  // Ends Run at once, and aborts the store. Idempotent, never waits for the network, does nothing to a communicator
  // that Run has returned.
  void Abort(const absl::Status& cause);

 private:
  absl::StatusOr<std::unique_ptr<Communicator>> Connect();

  const GlooOptions options_;
  RendezvousStore& store_;
  Mutex mutex_;
  std::unique_ptr<Mesh> mesh_ ABSL_GUARDED_BY(mutex_);  // while Run is under way
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

// GlooForming for callers that never abort it.
absl::StatusOr<std::unique_ptr<Communicator>> FormGloo(const GlooOptions& options, RendezvousStore& store);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_GLOO_GLOO_COMMUNICATOR_H_
