// Engine: what hooks of the job want to know of the state.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "worker/session/engine.h"

namespace lockstep::worker {
namespace {

// An Observed's content.
std::string Look(const HostState& state, const StateHook& hook) {
  StateFacts facts;
  const auto look = [&](int index, bool histogram) {
    const absl::Span<const std::byte> bytes = state.tensor(index);
    const absl::Span<const float> values(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
    return FactsOf(state.layout().tensors[static_cast<size_t>(index)].spec.name, values, histogram);
  };
  for (const int index : hook.statistics) *facts.add_statistics() = look(index, /*histogram=*/false);
  for (const int index : hook.histograms) *facts.add_histograms() = look(index, /*histogram=*/true);
  return facts.SerializeAsString();
}

}  // namespace

void Engine::LookForHooks(const Generation& generation, const Communicator& communicator, uint64_t step,
                          bool evaluated) {
  if (communicator.rank() != 0) return;
  std::vector<StateHook> due;
  for (const StateHook& hook : hooks_) {
    if (hook.Due(step, evaluated)) due.push_back(hook);
  }
  if (due.empty()) return;
  const NowDoing copying("a copy of the state of step ", step, " for hooks");
  // One copy at a time: training does not wait for those who look at the last one.
  if (looking_.exchange(true)) {
    LS_LOG(warn, "hook ", due[0].name, ": the state of step ", step,
           " is not looked at, because the one before still is");
    return;
  }
  absl::StatusOr<Snapshot> copy = snapshots_.Take(replica_->state());
  if (!copy.ok()) {
    looking_ = false;
    LS_LOG(warn, "hook ", due[0].name, ": no copy of the state of step ", step, ": ", copy.status().message());
    return;
  }
  looks_.Post([this, generation, step, due = std::move(due), copy = *std::move(copy)] {
    const NowDoing looking("the state of step ", step, " for hooks");
    const absl::Status copied = copy.Wait();
    for (const StateHook& hook : due) {
      if (copied.ok()) options_.post(Observed{generation, step, hook.name, Look(*copy.state, hook)});
    }
    if (!copied.ok()) LS_LOG(warn, "hook ", due[0].name, ": the state of step ", step, ": ", copied.message());
    looking_ = false;
  });
}

}  // namespace lockstep::worker
