// Fault injection into the NCCL fake of host execution, for tests: delays, failures and hangs as real NCCL shows them.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_ON_HOST_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_ON_HOST_H_

#include <cstdint>

#include "worker/collectives/nccl/nccl_api.h"

namespace lockstep::worker::nccl {

enum class Function : uint8_t {
  kNone,
  kGetUniqueId,
  kCommInitRankConfig,
  kCommGetAsyncError,
  kGroupStart,
  kGroupEnd,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
};

struct HostNcclFaults {
  // A call stays kInProgress until comm_get_async_error was called this many times, and is queued only then. Other
  // calls are refused meanwhile, as by NCCL.
  int questions = 0;
  // The first `well` calls of this function succeed, the next one fails; counted over all communicators of the process.
  Function failing = Function::kNone;
  int well = 0;
  // Connecting never returns; an abort never returns and leaves the communicator as it is.
  bool connect_hangs = false;
  bool abort_hangs = false;
};

// Sets the faults of all later calls.
void SetHostNccl(const HostNcclFaults& faults);
// Whether the failing call has been made.
bool HostNcclFailed();

}  // namespace lockstep::worker::nccl

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_ON_HOST_H_
