#include "worker/session/hook_looks.h"

#include <cmath>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"

namespace lockstep::worker {
namespace {

using Kind = HookInstant::Kind;

constexpr size_t kQueuedLooks = 256;

absl::Span<const float> Floats(const HostState& state, int tensor) {
  const absl::Span<const std::byte> bytes = state.tensor(tensor);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

const TensorSpec& SpecOf(const HostState& state, int tensor) {
  return state.layout().tensors[static_cast<size_t>(tensor)].spec;
}

void Gather(const HostState& state, const StateHook& hook, StateFacts& facts) {
  const auto look = [&](int tensor, bool histogram) {
    return FactsOf(SpecOf(state, tensor).name, Floats(state, tensor), histogram);
  };
  for (const int tensor : hook.statistics) *facts.add_statistics() = look(tensor, /*histogram=*/false);
  for (const int tensor : hook.histograms) *facts.add_histograms() = look(tensor, /*histogram=*/true);
}

std::string WhichIsNotFinite(const HostState& state) {
  std::string first;
  int more = 0;
  for (int tensor = 0; tensor < static_cast<int>(state.layout().tensors.size()); ++tensor) {
    if (SpecOf(state, tensor).dtype != DType::kF32 || IsFinite(Floats(state, tensor))) continue;
    first.empty() ? first = SpecOf(state, tensor).name : (++more, first);
  }
  if (first.empty()) return "; all of the state is finite";
  const std::string others = more == 0 ? "" : absl::StrCat(" and ", more, " more");
  return absl::StrCat("; not finite in the state: '", first, "'", others);
}

lockstep::Observed NoteOf(const std::string& note) {
  lockstep::Observed told;
  told.set_note(note);
  return told;
}

}  // namespace

HookLooks::HookLooks(SnapshotStore& snapshots, std::function<OwnMember()> own, std::function<void(Event)> post)
    : snapshots_(snapshots), own_(std::move(own)), post_(std::move(post)), looks_("hooks", kQueuedLooks) {}

void HookLooks::Tell(const Generation& generation, uint64_t step, const std::string& hook,
                     const lockstep::Observed& content) {
  post_(Observed{generation, step, hook, content.SerializeAsString()});
}

void HookLooks::BeginWork() {
  if (job_.tracer != nullptr) job_.tracer->Begin();
}

void HookLooks::EndStep(uint64_t step, bool applied) {
  if (job_.tracer != nullptr) SendTrace(job_.tracer->EndStep(step, applied));
}

void HookLooks::EndSlice(uint64_t slice) {
  if (job_.tracer != nullptr) job_.tracer->EndOther(absl::StrCat("slice ", slice, " of the evaluation"));
}

void HookLooks::AtStep(const RunStep& action, int rank, const StepResult& result, ReplicaState& state) {
  std::vector<HookInstant> at;
  const uint64_t stands_at = result.applied ? action.step : action.step - 1;
  if (result.applied) at.push_back({Kind::kStep, stands_at});
  if (!result.applied || result.record.skipped || !std::isfinite(result.record.loss)) {
    at.push_back({Kind::kNan, stands_at});
    // The job ends with this.
    if (!result.applied) WaitForAll();
  }
  if (!at.empty()) Look(action.generation, rank, at, result.message, state);
}

void HookLooks::AtEvaluation(const Generation& generation, uint64_t step, int rank, ReplicaState& state) {
  Look(generation, rank, {{Kind::kEvaluation, step}}, "", state);
}

void HookLooks::Look(const Generation& generation, int rank, const std::vector<HookInstant>& at,
                     const std::string& note, ReplicaState& state) {
  BeginTrace(at);
  if (rank != 0) return;
  std::vector<StateHook> due = Due(at);
  const uint64_t step = at[0].step;
  // Of a job that goes on, the state is copied only for hooks that name tensors.
  const bool ends = at[0].kind == Kind::kNan;
  std::erase_if(due, [&](const StateHook& hook) {
    if (ends || hook.LooksAtTensors()) return false;
    if (hook.when.on == job::Hook::ON_NAN) Tell(generation, step, hook.name, NoteOf(note));
    return true;
  });
  if (due.empty()) return;
  const NowDoing copying("a copy of the state of step ", step, " for hooks");
  const Profiler::Scope scope(profiler(), ProfileTrack::kState, "(copy for hooks)");
  // One copy at a time: training does not wait for those who look at the last one.
  if (looking_.exchange(true)) {
    LS_LOG(warn, "hook ", due[0].name, ": the state of step ", step,
           " is not looked at, because the one before still is");
    return;
  }
  absl::StatusOr<Snapshot> copy = snapshots_.Take(state);
  if (!copy.ok()) {
    looking_ = false;
    LS_LOG(warn, "hook ", due[0].name, ": no copy of the state of step ", step, ": ", copy.status().message());
    return;
  }
  LookAt(generation, step, std::move(due), note, *copy);
}

std::vector<StateHook> HookLooks::Due(const std::vector<HookInstant>& at) const {
  std::vector<StateHook> due;
  for (const StateHook& hook : job_.hooks) {
    if (hook.when.MetBy(at)) due.push_back(hook);
  }
  return due;
}

void HookLooks::LookAt(const Generation& generation, uint64_t step, std::vector<StateHook> due, const std::string& note,
                       const Snapshot& copy) {
  looks_.Post([this, generation, step, due = std::move(due), note, copy] {
    const NowDoing looking("the state of step ", step, " for hooks");
    const absl::Status copied = copy.Wait();
    for (const StateHook& hook : due) {
      if (!copied.ok()) break;
      lockstep::Observed told;
      if (hook.when.on == job::Hook::ON_NAN) told = NoteOf(absl::StrCat(note, WhichIsNotFinite(*copy.state)));
      Gather(*copy.state, hook, *told.mutable_state());
      Tell(generation, step, hook.name, told);
    }
    if (!copied.ok()) LS_LOG(warn, "hook ", due[0].name, ": the state of step ", step, ": ", copied.message());
    looking_ = false;
  });
}

std::function<void(const Snapshot&)> HookLooks::AtSave(const TakeSnapshot& action) {
  std::vector<HookInstant> at = {{Kind::kCheckpoint, action.step}};
  if (action.last) {
    at.push_back({Kind::kEnd, action.step});
    if (job_.tracer != nullptr) SendTrace(job_.tracer->Finish());
  } else {
    BeginTrace(at);
  }
  std::vector<StateHook> due = Due(at);
  std::erase_if(due, [](const StateHook& hook) { return !hook.LooksAtTensors(); });
  const OwnMember own = own_();
  if (due.empty() || own.rank != 0) return [](const Snapshot&) {};
  if (looking_.exchange(true) && !action.last) {
    LS_LOG(warn, "hook ", due[0].name, ": the checkpoint of step ", action.step,
           " is not looked at, because the state before still is");
    return [](const Snapshot&) {};
  }
  return [this, step = action.step, generation = own.generation, due = std::move(due)](const Snapshot& copy) {
    LookAt(generation, step, due, "", copy);
  };
}

void HookLooks::BeginTrace(const std::vector<HookInstant>& at) {
  if (job_.tracer == nullptr) return;
  const std::string left_out = job_.tracer->Reached(at);
  if (left_out.empty()) return;
  LS_LOG(warn, "hook ", left_out, ": the steps behind step ", at[0].step,
         " are not traced, because those of an earlier one still are");
}

void HookLooks::SendTrace(std::optional<StepTrace> trace) {
  if (!trace.has_value()) return;
  looks_.Post([this, own = own_(), job = job_.job, trace = std::make_shared<const StepTrace>(*std::move(trace))] {
    const NowDoing writing("the trace of the steps behind step ", trace->at);
    const std::vector<TracePiece> pieces = PiecesOf(*trace, job, own.name, own.rank);
    // It is of no state, and so of no generation.
    const Generation now = own_().generation;
    for (const TracePiece& piece : pieces) {
      lockstep::Observed told;
      *told.mutable_trace() = piece;
      Tell(now, trace->at, trace->hook, told);
    }
  });
}

void HookLooks::WaitForAll() {
  std::promise<void> done;
  if (looks_.Post([&done] { done.set_value(); })) done.get_future().wait();
}

}  // namespace lockstep::worker
