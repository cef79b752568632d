// What tests ask of NCCL's stand-in in host execution: the faults that NCCL itself shows now and then.
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
  // Work that is handed over is in progress until its communicator was asked for an asynchronous error so many times,
  // and is queued only then. Other calls are meanwhile refused, as NCCL does.
  int questions = 0;
  // Of this function, counted from now on over all communicators of the process, the first call after `well` fails.
  Function failing = Function::kNone;
  int well = 0;
  // A call never returns, and a communicator that is aborted stays as it is.
  bool connect_hangs = false;
  bool abort_hangs = false;
};

// From now on.
void SetHostNccl(const HostNcclFaults& faults);
// Whether the call that was to fail has been made.
bool HostNcclFailed();

}  // namespace lockstep::worker::nccl

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_ON_HOST_H_
