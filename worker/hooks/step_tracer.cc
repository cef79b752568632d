#include "worker/hooks/step_tracer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/profile/gzip.h"

namespace lockstep::worker {
namespace {

constexpr size_t kPieceBytes = size_t{512} << 10;

}  // namespace

std::vector<TraceHook> TraceHooksOf(const JobSpec& job, int64_t epoch_samples) {
  std::vector<TraceHook> hooks;
  for (const job::Hook& hook : job.hooks()) {
    if (hook.has_profile()) hooks.push_back({hook.name(), ConditionOf(hook, job, epoch_samples), hook.profile()});
  }
  return hooks;
}

std::string StepTracer::Reached(absl::Span<const HookInstant> instants) {
  for (const TraceHook& hook : hooks_) {
    if (!hook.when.MetBy(instants)) continue;
    if (hook_ != nullptr) return hook.name;
    hook_ = &hook;
    at_ = instants[0].step;
    profiler_.Start();
  }
  return "";
}

std::optional<StepTrace> StepTracer::EndStep(uint64_t step, bool applied) {
  if (hook_ == nullptr) return std::nullopt;
  EndOther(applied ? absl::StrCat("step ", step) : absl::StrCat("step ", step, ", broken"));
  steps_.back().step = static_cast<int64_t>(step);
  applied_ += applied ? 1 : 0;
  return applied_ == hook_->steps ? Finish() : std::nullopt;
}

void StepTracer::EndOther(absl::string_view name) {
  if (hook_ != nullptr) steps_.push_back({0, begin_ns_, profiler_.now(), std::string(name)});
}

std::optional<StepTrace> StepTracer::Finish() {
  if (hook_ == nullptr) return std::nullopt;
  profiler_.Stop();
  const TraceHook& hook = *std::exchange(hook_, nullptr);
  const int64_t applied = std::exchange(applied_, 0);
  std::vector<TracedStep> steps = std::exchange(steps_, {});
  if (applied == 0) return std::nullopt;
  return StepTrace{hook.name, at_, applied, std::move(steps), profiler_};
}

std::vector<TracePiece> PiecesOf(const StepTrace& trace, const std::string& job, const std::string& worker, int rank) {
  const std::string process = absl::StrCat(job, ": ", worker, ", rank ", rank);
  const std::string bytes = Gzip(ChromeTrace(trace.profiler, process, trace.steps, rank + 1));
  std::vector<TracePiece> pieces(std::max(size_t{1}, (bytes.size() + kPieceBytes - 1) / kPieceBytes));
  for (size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].set_worker(worker);
    pieces[i].set_index(static_cast<uint32_t>(i));
    pieces[i].set_pieces(static_cast<uint32_t>(pieces.size()));
    pieces[i].set_steps(static_cast<uint64_t>(trace.applied));
    pieces[i].set_cut(trace.profiler.left_out());
    pieces[i].set_bytes(bytes.substr(i * kPieceBytes, kPieceBytes));
  }
  return pieces;
}

}  // namespace lockstep::worker
