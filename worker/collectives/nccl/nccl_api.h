// The functions of NCCL that Lockstep calls, as a table: loaded from libnccl.so.2 (load_nccl.h), or the fake of host
// execution (nccl_on_host.h). Types and constants are declared here as in nccl.h, which keeps them within version 2;
// nccl_check.cc compares them with that header where the build has it.
//
// Threading: immutable. NCCL's functions may be called by any thread, one at a time per communicator.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_API_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_API_H_

#include <cstddef>

#include "worker/device/cuda/runtime/runtime.h"

struct ncclComm;

namespace lockstep::worker::nccl {

using Comm = ::ncclComm*;

struct UniqueId {
  char bytes[128];
};

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum DataType : int { kUint8 = 1, kInt64 = 4, kFloat32 = 7 };
enum ReduceOp : int { kSum = 0 };

// NCCL_CONFIG_UNDEF_INT: "not set".
inline constexpr int kUndefined = -2147483647 - 1;

// ncclConfig_t of version 2.18. Its size tells NCCL the version; later versions accept it.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
};

struct Api {
  Result (*get_version)(int* version);
  Result (*get_unique_id)(UniqueId* id);
  Result (*comm_init_rank_config)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*comm_get_async_error)(Comm comm, Result* error);
  Result (*comm_abort)(Comm comm);
  const char* (*get_error_string)(Result result);
  const char* (*get_last_error)(Comm comm);
  Result (*group_start)();
  Result (*group_end)();
  Result (*all_reduce)(const void* send, void* receive, size_t count, DataType type, ReduceOp op, Comm comm,
                       device::cuda::StreamHandle stream);
  Result (*reduce_scatter)(const void* send, void* receive, size_t receive_count, DataType type, ReduceOp op, Comm comm,
                           device::cuda::StreamHandle stream);
  Result (*all_gather)(const void* send, void* receive, size_t send_count, DataType type, Comm comm,
                       device::cuda::StreamHandle stream);
  Result (*broadcast)(const void* send, void* receive, size_t count, DataType type, int root, Comm comm,
                      device::cuda::StreamHandle stream);
};

}  // namespace lockstep::worker::nccl

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_API_H_
