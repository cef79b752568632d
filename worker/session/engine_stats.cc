// What the engine measured, for reports.
#include "worker/session/engine.h"

namespace lockstep::worker {

std::vector<NamedValue> Engine::Stats() const {
  MutexLock lock(&mutex_);
  std::vector<NamedValue> stats = stats_;
  if (stats.empty()) return stats;
  stats.push_back({"step_ms_p50", durations_.QuantileMs(0.50)});
  stats.push_back({"step_ms_p95", durations_.QuantileMs(0.95)});
  return stats;
}

void Engine::BreakDurations() {
  MutexLock lock(&mutex_);
  durations_.Interrupted();
}

void Engine::PublishStats() {
  const StepTimes times = replica_->times();
  const uint64_t bytes = calls_.bytes_moved();
  MutexLock lock(&mutex_);
  stats_ = {{"steps", static_cast<double>(steps_)},
            {"samples", static_cast<double>(times.samples)},
            {"compute_seconds", absl::ToDoubleSeconds(times.compute + times.update)},
            {"all_reduce_seconds", absl::ToDoubleSeconds(times.all_reduce)},
            {"data_seconds", absl::ToDoubleSeconds(times.data)},
            {"checkpoint_seconds", absl::ToDoubleSeconds(checkpoint_time_)},
            {"bytes_reduced", static_cast<double>(bytes)},
            {"redone_attempts", static_cast<double>(times.redone)},
            {"gradient_norm", norm_.value},
            {"gradient_norm_step", static_cast<double>(norm_.step)}};
}

}  // namespace lockstep::worker
