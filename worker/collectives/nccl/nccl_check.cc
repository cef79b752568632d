// Holds nccl_api.h to NCCL's own header. No code.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "worker/collectives/nccl/nccl_api.h"

namespace lockstep::worker::nccl {
namespace {

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(int{kSuccess} == int{ncclSuccess} && int{kUnhandledCudaError} == int{ncclUnhandledCudaError});
static_assert(int{kSystemError} == int{ncclSystemError} && int{kInternalError} == int{ncclInternalError});
static_assert(int{kInvalidArgument} == int{ncclInvalidArgument} && int{kInvalidUsage} == int{ncclInvalidUsage});
static_assert(int{kRemoteError} == int{ncclRemoteError} && int{kInProgress} == int{ncclInProgress});
static_assert(int{kUint8} == int{ncclUint8} && int{kInt64} == int{ncclInt64} && int{kFloat32} == int{ncclFloat32});
static_assert(int{kSum} == int{ncclSum});
static_assert(kUndefined == NCCL_CONFIG_UNDEF_INT);
static_assert(std::is_same_v<Comm, ncclComm_t> && std::is_same_v<device::cuda::StreamHandle, cudaStream_t>);
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));

// The number of arguments and, but for enums and structs of the same size, their types.
template <typename Own, typename Theirs>
struct SameShape : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
struct SameShape<R1 (*)(A1...), R2 (*)(A2...)>
    : std::bool_constant<sizeof...(A1) == sizeof...(A2) && ((sizeof(A1) == sizeof(A2)) && ...) &&
                         sizeof(R1) == sizeof(R2)> {};

#define LS_SAME(own, theirs) static_assert(SameShape<decltype(Api::own), decltype(&theirs)>::value)
LS_SAME(get_version, ncclGetVersion);
LS_SAME(get_unique_id, ncclGetUniqueId);
LS_SAME(comm_init_rank_config, ncclCommInitRankConfig);
LS_SAME(comm_get_async_error, ncclCommGetAsyncError);
LS_SAME(comm_abort, ncclCommAbort);
LS_SAME(get_error_string, ncclGetErrorString);
LS_SAME(get_last_error, ncclGetLastError);
LS_SAME(group_start, ncclGroupStart);
LS_SAME(group_end, ncclGroupEnd);
LS_SAME(all_reduce, ncclAllReduce);
LS_SAME(reduce_scatter, ncclReduceScatter);
LS_SAME(all_gather, ncclAllGather);
LS_SAME(broadcast, ncclBroadcast);
#undef LS_SAME

}  // namespace
}  // namespace lockstep::worker::nccl
