#include "tests/load/shared_state.h"

#include <utility>

#include "common/graph/serialize.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"

namespace lockstep::load {

absl::Status SharedState::Prepare(const std::string& metagraph) {
  MutexLock lock(&mutex_);
  if (state_.has_value()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const MetaGraph graph, ParseMetaGraph(metagraph));
  LS_ASSIGN_OR_RETURN(worker::HostState state, worker::HostState::Create(MakeStateLayout(graph)));
  state_.emplace(std::move(state));
  return absl::OkStatus();
}

uint64_t SharedState::bytes() const {
  MutexLock lock(&mutex_);
  return state_.has_value() ? state_->bytes().size() : 0;
}

absl::Status SharedState::Restore(worker::ChiefClient& client, const WorkerFence& fence, const SnapshotId& snapshot,
                                  uint32_t share, uint32_t shares) {
  std::optional<SharePlan> plan;
  {
    MutexLock lock(&mutex_);
    if (!state_.has_value()) return absl::FailedPreconditionError("nothing was prepared");
    LS_ASSIGN_OR_RETURN(plan, PlanShares(state_->CheckpointLayout(), static_cast<int>(shares)));
  }
  worker::CallGroup alone;
  return client.FetchShare(fence, snapshot, share, shares, alone, [&](uint64_t offset, absl::Span<const char> bytes) {
    MutexLock lock(&mutex_);
    state_->WriteShare(plan->shares[share], offset, bytes);
    at_.clear();
  });
}

StateAt SharedState::At(uint64_t step) {
  MutexLock lock(&mutex_);
  const auto known = at_.find(step);
  if (known != at_.end()) return known->second;
  auto copy = std::make_shared<worker::HostState>(worker::HostState::Create(state_->layout()).value());
  copy->CopyFrom(*state_);
  copy->step() = static_cast<int64_t>(step);
  StateAt at{copy, std::make_shared<const StateDigests>(copy->Digests())};
  at_[step] = at;
  if (at_.size() > kKept) at_.erase(at_.begin());
  return at;
}

}  // namespace lockstep::load
