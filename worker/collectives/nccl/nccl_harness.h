// Ranks for tests of NCCL's communicator: threads of one process, each with a device of its own in host execution, and
// NCCL's stand-in between them.
//
// Threading: each rank is used by the thread that made it; communicator() as communicator.h.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_HARNESS_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_HARNESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/nccl/nccl_api.h"
#include "worker/collectives/nccl/nccl_communicator.h"
#include "worker/device/device.h"
#include "worker/device/step_math.h"

namespace lockstep::worker {

// Three tensors with gaps; sizes that no number of ranks divides.
const std::vector<device::TensorRange>& RangesOfBucket();
inline constexpr int64_t kRun = 1760;
inline constexpr int32_t kExponents[] = {-40, -45, -38};

// What ranks contribute.
inline int64_t IntegerOf(int rank, int64_t i) { return (i * 7919 + rank * 104729) * 1000003; }
inline float ValueOf(int rank, int64_t i) { return static_cast<float>((i * 37 + rank * 911) % 2003 - 1000) * 0.0123f; }

// How long a test waits for what has to come.
inline constexpr absl::Duration kLimit = absl::Seconds(30);

// One rank with a bucket on a device of its own.
class NcclRank {
 public:
  NcclRank(const nccl::Api& api, std::unique_ptr<Communicator> host, const NcclOptions& options);
  ~NcclRank();

  // Contributes to a sum of integers, or of floats.
  Handle Contribute(bool exact);
  // Contributes what lies there, to a sum of integers, and waits for nothing.
  Handle ContributeAgain();
  // Takes part in a broadcast of as many bytes as it holds; keeps nothing of it without `keeps`.
  Handle Broadcast(int root, bool keeps, const std::vector<char>& own);
  // Takes part in a broadcast of `bytes` bytes of another rank, and keeps nothing.
  Handle PassOn(int root, size_t bytes);

  std::vector<char> State();
  std::vector<float> Floats();

  const absl::Status& connected() const { return connected_; }
  // Of the host's communicator, where the devices were not connected.
  absl::Status host_status() const { return unconnected_->status(); }
  Communicator& communicator() { return *communicator_; }
  void Close() { communicator_ = nullptr; }

 private:
  DeviceBucket Bucket(bool exact) const;

  std::unique_ptr<device::Device> device_;
  absl::Status connected_;
  std::unique_ptr<Communicator> unconnected_;
  int rank_ = 0;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> filled_;
  std::unique_ptr<device::TensorTable> table_;
  std::unique_ptr<device::Buffer> sums_, floats_, exponents_, state_;
  std::vector<int64_t> host_sums_;
  std::vector<float> host_floats_;
  std::vector<char> host_state_;
  std::unique_ptr<Communicator> communicator_;
};

// Runs `act` for every rank on a thread of its own, the device's owner, and returns what each returned, or why it was
// not connected. All ranks stay until each has acted.
std::vector<absl::Status> WithRanks(int ranks, const std::function<absl::Status(int, NcclRank&)>& act,
                                    const NcclOptions& options = {});
std::vector<absl::Status> WithRanks(const nccl::Api& api, int ranks,
                                    const std::function<absl::Status(int, NcclRank&)>& act,
                                    const NcclOptions& options = {});

// Connects ranks by `api` and returns what came of it, per rank, and in `host_statuses` the host communicators of those
// that were not connected. `meanwhile` gets rank 0's host communicator.
std::vector<absl::Status> ConnectRanks(const nccl::Api& api, int ranks, std::vector<absl::Status>* host_statuses,
                                       const std::function<void(Communicator&)>& meanwhile = nullptr,
                                       const NcclOptions& options = {});

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_HARNESS_H_
