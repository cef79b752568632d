#include "worker/collectives/nccl/load_nccl.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace lockstep::worker::nccl {
namespace {

constexpr char kFile[] = "libnccl.so.2";
constexpr int kOldest = 21800;  // the first whose communicators are configured as ours

template <typename F>
void Find(void* library, const char* name, F*& function, std::string& missing) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  if (function == nullptr) missing = name;
}

absl::StatusOr<const Api*> Load() {
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("NCCL is needed for several workers on GPUs, and ", dlerror(),
                     ". Install it (Python's package nvidia-nccl-cu13 has it) and name its folder in LD_LIBRARY_PATH"));
  }
  static Api api;
  std::string missing;
  Find(library, "ncclGetVersion", api.get_version, missing);
  Find(library, "ncclGetUniqueId", api.get_unique_id, missing);
  Find(library, "ncclCommInitRankConfig", api.comm_init_rank_config, missing);
  Find(library, "ncclCommGetAsyncError", api.comm_get_async_error, missing);
  Find(library, "ncclCommAbort", api.comm_abort, missing);
  Find(library, "ncclGetErrorString", api.get_error_string, missing);
  Find(library, "ncclGetLastError", api.get_last_error, missing);
  Find(library, "ncclGroupStart", api.group_start, missing);
  Find(library, "ncclGroupEnd", api.group_end, missing);
  Find(library, "ncclAllReduce", api.all_reduce, missing);
  Find(library, "ncclReduceScatter", api.reduce_scatter, missing);
  Find(library, "ncclAllGather", api.all_gather, missing);
  Find(library, "ncclBroadcast", api.broadcast, missing);
  int version = 0;
  if (!missing.empty() || api.get_version(&version) != kSuccess || version < kOldest) {
    return absl::FailedPreconditionError(absl::StrCat(
        kFile, " is ", missing.empty() ? absl::StrCat("version ", version) : absl::StrCat("without ", missing),
        "; Lockstep needs NCCL 2.18 or later"));
  }
  return &api;
}

}  // namespace

absl::StatusOr<const Api*> LoadNccl() {
  static const auto* const loaded = new absl::StatusOr<const Api*>(Load());
  return *loaded;
}

}  // namespace lockstep::worker::nccl
