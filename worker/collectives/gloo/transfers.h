// The collectives as transfers over a mesh: what is posted, awaited, summed and forwarded for each kind of call.
//
// Threading: thread-compatible; the communicator's queue thread owns the only instance.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_GLOO_TRANSFERS_H_
#define LOCKSTEP_WORKER_COLLECTIVES_GLOO_TRANSFERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/collectives/bucketer.h"
#include "worker/collectives/call.h"
#include "worker/collectives/gloo/mesh.h"

namespace lockstep::worker {

class Transfers {
 public:
  // `most_elements` limits a piece, the same on every rank.
  Transfers(Mesh& mesh, int64_t most_elements) : mesh_(mesh), most_elements_(most_elements) {}

  // Blocks until the call is complete on this rank, or the mesh broke.
  absl::Status Run(const Call& call);

 private:
  // A piece of the own block, elements `range` of the values, has come from every other rank. received[r] is rank r's,
  // null for the own rank; its memory is used again when this returns.
  template <typename T>
  using PieceCame = absl::FunctionRef<absl::Status(int64_t piece, FlatRange range, const std::vector<T*>& received)>;

  absl::Status AllGather(const Call& call);
  absl::Status ReduceScatter(const Call& call);
  absl::Status ReduceConvertGather(const Call& call);
  absl::Status Broadcast(const Call& call);
  template <typename T>
  absl::Status AllReduce(const Call& call, absl::Span<T> values);
  template <typename T>
  absl::Status AllReduceSmall(const Call& call, absl::Span<T> values);
  template <typename T>
  absl::Status ExchangePieces(const Call& call, absl::Span<const T> values, const std::vector<int64_t>& blocks,
                              PieceCame<T> came);
  // Sums every rank's values into this rank's block of `values`.
  template <typename T>
  absl::Status ReducePieces(const Call& call, absl::Span<T> values, const std::vector<int64_t>& blocks);
  template <typename T>
  T* Scratch(size_t elements);

  Mesh& mesh_;
  const int64_t most_elements_;
  std::vector<int64_t> scratch_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_GLOO_TRANSFERS_H_
