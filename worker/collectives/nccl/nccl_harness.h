// Ranks for tests of the NCCL communicator: threads of one process, each with a device in host execution, connected by
// the NCCL fake.
//
// Threading: each NcclRank belongs to the thread that made it; its communicator's Abort and status are thread-safe.
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

// Three tensors with gaps, whose sizes no number of ranks divides. kRun: elements of the bucket.
const std::vector<device::TensorRange>& RangesOfBucket();
inline constexpr int64_t kRun = 1760;
inline constexpr int32_t kExponents[] = {-40, -45, -38};

// The contribution of a rank at element i.
inline int64_t IntegerOf(int rank, int64_t i) { return (i * 7919 + rank * 104729) * 1000003; }
inline float ValueOf(int rank, int64_t i) { return static_cast<float>((i * 37 + rank * 911) % 2003 - 1000) * 0.0123f; }

// How long a test waits for an event that must come.
inline constexpr absl::Duration kLimit = absl::Seconds(30);

// One rank, with a device that holds one bucket.
class NcclRank {
 public:
  NcclRank(const nccl::Api& api, std::unique_ptr<Communicator> host, const NcclOptions& options);
  ~NcclRank();

  // Fills the bucket and reduces it, as integers (`exact`) or floats.
  Handle Contribute(bool exact);
  // Reduces the bucket again as integers, with its current contents and without waiting for anything.
  Handle ContributeAgain();
  // Takes part in a broadcast of own.size() bytes; without `keeps` passes null memory.
  Handle Broadcast(int root, bool keeps, const std::vector<char>& own);
  // Takes part in another rank's broadcast of `bytes` bytes without keeping it.
  Handle PassOn(int root, size_t bytes);

  std::vector<char> State();
  std::vector<float> Floats();

  const absl::Status& connected() const { return connected_; }
  // The host communicator's status. REQUIRES: connecting the devices failed.
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

// Runs `act` for every rank on a thread of its own and returns its results, or the errors of connecting. All ranks stay
// alive until each has acted.
std::vector<absl::Status> WithRanks(int ranks, const std::function<absl::Status(int, NcclRank&)>& act,
                                    const NcclOptions& options = {});
std::vector<absl::Status> WithRanks(const nccl::Api& api, int ranks,
                                    const std::function<absl::Status(int, NcclRank&)>& act,
                                    const NcclOptions& options = {});

// Connects ranks by `api` and returns each rank's status; `host_statuses` gets the status of the host communicator for
// each rank that was not connected. `meanwhile` is called with rank 0's host communicator.
std::vector<absl::Status> ConnectRanks(const nccl::Api& api, int ranks, std::vector<absl::Status>* host_statuses,
                                       const std::function<void(Communicator&)>& meanwhile = nullptr,
                                       const NcclOptions& options = {});

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_HARNESS_H_
