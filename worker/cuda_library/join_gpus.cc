#include "worker/cuda_library/join_gpus.h"

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/collectives/nccl/load_nccl.h"
#include "worker/collectives/nccl/nccl_communicator.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::worker {
namespace {

constexpr Tag kRankTag{-1, 0x67707573u};
constexpr absl::Duration kLimit = absl::Seconds(60);
constexpr int32_t kSharesGpus = 23003;

// What the ranks tell each other.
struct RankGpu {
  int32_t nccl_version = 0;  // 0: it has none
  char place[124] = {};      // the GPU and, where it is set, what NCCL takes for the host
};

RankGpu Describe(const absl::StatusOr<const nccl::Api*>& api, const std::string& gpu) {
  RankGpu rank;
  int version = 0;
  if (api.ok() && (*api)->get_version(&version) == nccl::kSuccess) rank.nccl_version = version;
  const char* const host = std::getenv("NCCL_HOSTID");
  const std::string place = absl::StrCat(gpu, "/", host == nullptr ? "" : host);
  place.copy(rank.place, sizeof rank.place - 1);
  return rank;
}

// Why NCCL cannot reduce between these ranks; empty: it can.
std::string WhyNot(const std::vector<RankGpu>& ranks, size_t own_rank, const absl::Status& own) {
  std::set<std::string> places;
  int shared = -1;
  bool all_share = true;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].nccl_version == 0) {
      return absl::StrCat("rank ", r, " has no NCCL", r == own_rank ? absl::StrCat(" (", own.message(), ")") : "");
    }
    if (ranks[r].nccl_version != ranks[0].nccl_version) {
      return absl::StrCat("rank ", r, " has NCCL ", ranks[r].nccl_version, ", rank 0 has ", ranks[0].nccl_version);
    }
    if (!places.insert(ranks[r].place).second) shared = static_cast<int>(r);
    all_share = all_share && ranks[r].nccl_version >= kSharesGpus;
  }
  if (shared < 0 || all_share) return "";
  return absl::StrCat("rank ", shared, " shares its GPU with another rank, which NCCL serves from 2.30.3 on");
}

}  // namespace

absl::StatusOr<device::JoinedGpus> JoinGpus(int ordinal, Communicator& host) {
  const absl::StatusOr<const nccl::Api*> api = nccl::LoadNccl();
  LS_ASSIGN_OR_RETURN(const device::cuda::GpuFacts facts, device::cuda::FactsOf(ordinal));
  std::vector<RankGpu> ranks(static_cast<size_t>(host.size()));
  ranks[static_cast<size_t>(host.rank())] = Describe(api, facts.uuid);
  const std::vector<int64_t> blocks(ranks.size(), sizeof(RankGpu));
  const absl::Span<char> bytes(reinterpret_cast<char*>(ranks.data()), ranks.size() * sizeof(RankGpu));
  LS_RETURN_IF_ERROR(WaitOrAbort(host, *host.AllGather(kRankTag, bytes, blocks), kLimit));

  device::JoinedGpus joined;
  joined.why_not = WhyNot(ranks, static_cast<size_t>(host.rank()), api.status());
  if (!joined.why_not.empty()) return joined;
  absl::StatusOr<std::unique_ptr<DeviceCommunicator>> connected = ConnectNccl(**api, host, {.ordinal = ordinal});
  // NCCL may fail for reasons of its own (shared memory, memory of the GPU): then nobody uses it.
  std::string outcomes(ranks.size(), '\0');
  outcomes[static_cast<size_t>(host.rank())] = connected.ok() ? 1 : 0;
  const std::vector<int64_t> ones(ranks.size(), 1);
  LS_RETURN_IF_ERROR(WaitOrAbort(host, *host.AllGather(kRankTag, absl::MakeSpan(outcomes), ones), kLimit));
  const size_t failed = outcomes.find('\0');
  if (failed == std::string::npos) {
    joined.communicator = *std::move(connected);
  } else {
    joined.why_not = absl::StrCat("NCCL did not connect rank ", failed,
                                  connected.ok() ? "" : absl::StrCat(": ", connected.status().message()));
  }
  return joined;
}

}  // namespace lockstep::worker
