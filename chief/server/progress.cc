#include "chief/server/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kTerminalEvery = absl::Milliseconds(200);
constexpr absl::Duration kPlainEvery = absl::Seconds(5);
constexpr absl::Duration kRateOver = absl::Seconds(10);

double ValueOf(const std::vector<NamedValue>& values, const std::string& name) {
  for (const NamedValue& value : values) {
    if (value.name == name) return value.value;
  }
  return 0;
}

std::string Eta(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const absl::Duration left = absl::Seconds(static_cast<int64_t>(seconds));
  const int64_t hours = absl::ToInt64Hours(left);
  const int64_t minutes = absl::ToInt64Minutes(left) % 60;
  if (hours > 0) return absl::StrFormat("%dh%02dm", hours, minutes);
  if (minutes > 0) return absl::StrFormat("%dm%02ds", minutes, absl::ToInt64Seconds(left) % 60);
  return absl::StrFormat("%ds", absl::ToInt64Seconds(left));
}

std::string HowToLoad(const std::string& checkpoint) {
  if (absl::StartsWith(checkpoint, "s3://")) {
    return "\nfetch its files model*.safetensors to load it in PyTorch, or write it as ONNX: lockstep model export";
  }
  return absl::StrCat("\nload it in PyTorch:\n  import glob, safetensors.torch\n  files = glob.glob(\"", checkpoint,
                      "/model*.safetensors\")\n  model.load_state_dict({k: v for f in files for k, v "
                      "in safetensors.torch.load_file(f).items()})");
}

}  // namespace

void Progress::On(absl::Time now, const StepsAgreed& action) {
  if (action.step < step_) {
    recent_.clear();
    board_.GoBackTo(action.step);
    learning_rate_.reset();
  }
  step_ = action.step;
  for (const StepRecord& record : action.records) ShowRate(record);
  if (!action.records.empty()) loss_ = action.records.back().loss;
  recent_.push_back({now, action.step});
  while (recent_.size() > 2 && now - recent_.front().when > kRateOver) recent_.pop_front();
}

// By what the workers did: the board hears only of evaluations that are told.
void Progress::ShowRate(const StepRecord& record) {
  const bool dropped = learning_rate_.has_value() && record.learning_rate < *learning_rate_;
  learning_rate_ = record.learning_rate;
  if (!dropped || !options_.evaluation.plateau.cuts) return;
  options_.tell({.name = "learning_rate",
                 .text = absl::StrCat("learning rate ", record.learning_rate, " from step ", record.step,
                                      " on: ", MetricName(options_.evaluation.metric), " no longer improves"),
                 .fields = {{"step", static_cast<int64_t>(record.step)}, {"learning_rate", record.learning_rate}}});
}

void Progress::On(const EvaluationDone& action) {
  LogEvent event{.name = "evaluated", .text = board_.Add(action)};
  event.fields.emplace_back("step", static_cast<int64_t>(action.step));
  for (const NamedValue& value : board_.metrics()) event.fields.emplace_back(value.name, value.value);
  options_.tell(event);
}

void Progress::On(const RecordSample& action) {
  options_.tell({.name = "sample",
                 .text = absl::StrCat("sample of step ", action.step, ":\n", action.text),
                 .fields = {{"step", static_cast<int64_t>(action.step)}, {"sample", action.text}}});
}

void Progress::On(const WorkerCounters& action) {
  checkpoint_seconds_[action.name] = ValueOf(action.stats, "checkpoint_seconds");
}

double Progress::CheckpointSeconds() const {
  double total = 0;
  for (const auto& [worker, seconds] : checkpoint_seconds_) total = std::max(total, seconds);
  return total;
}

void Progress::On(const WentBack& action) {
  recent_.clear();
  opened_.clear();
  learning_rate_.reset();
  step_ = action.step;
  // The checkpoint's history is older than the copy, which was evaluated since.
  action.from_copy ? board_.GoBackTo(action.step) : board_.StartAgain(action.ledger);
  options_.tell(
      {.name = "repaired",
       .text = absl::StrCat("went back to step ", step_, action.from_copy ? ", kept in memory: " : ": ", action.reason),
       .fields = {{"step", static_cast<int64_t>(step_)},
                  {"found_at", static_cast<int64_t>(action.found_at)},
                  {"from_copy", int64_t{action.from_copy}},
                  {"hosts", absl::StrJoin(action.hosts, ", ")}}});
}

void Progress::SaveOpened(absl::Time now, const SnapshotId& snapshot) { opened_[snapshot] = now; }

void Progress::SavePublished(absl::Time now, const SnapshotId& snapshot) {
  const auto opened = opened_.find(snapshot);
  const absl::Duration took = opened == opened_.end() ? absl::ZeroDuration() : now - opened->second;
  opened_.clear();
  const double stalled = std::max(0.0, CheckpointSeconds() - checkpoint_seconds_before_);
  checkpoint_seconds_before_ = CheckpointSeconds();
  options_.tell({.name = "saved",
                 .text = absl::StrFormat("saved step %d  %.1f MiB in %.2f s, stalled %.1f ms", snapshot.step,
                                         options_.state_mib, absl::ToDoubleSeconds(took), 1000 * stalled),
                 .fields = {{"step", static_cast<int64_t>(snapshot.step)},
                            {"mebibytes", options_.state_mib},
                            {"seconds", absl::ToDoubleSeconds(took)},
                            {"stalled_seconds", stalled}}});
}

double Progress::samples_per_second(absl::Time now) const {
  if (recent_.size() < 2) return 0;
  const double seconds = absl::ToDoubleSeconds(now - recent_.front().when);
  const uint64_t steps = recent_.back().step - std::min(recent_.front().step, recent_.back().step);
  return seconds <= 0 ? 0 : static_cast<double>(steps * options_.global_batch) / seconds;
}

double Progress::eta_seconds(absl::Time now) const {
  const double rate = samples_per_second(now);
  if (rate <= 0 || options_.end_step == std::numeric_limits<int64_t>::max()) {
    return std::numeric_limits<double>::infinity();
  }
  return static_cast<double>((options_.end_step - std::min(step_, options_.end_step)) * options_.global_batch) / rate;
}

std::vector<LinePart> Progress::Parts(absl::Time now) const {
  const double epoch = static_cast<double>(step_ * options_.global_batch) / static_cast<double>(options_.epoch_samples);
  const bool bounded = options_.end_step != std::numeric_limits<int64_t>::max();
  std::vector<LinePart> parts;
  parts.push_back(
      {bounded ? absl::StrFormat("step %d/%d", step_, options_.end_step) : absl::StrCat("step ", step_), 7});
  if (bounded) parts.push_back({absl::StrCat(100 * step_ / std::max<uint64_t>(options_.end_step, 1), "%"), 5});
  parts.push_back({absl::StrFormat("ep %.1f", epoch), 1});
  parts.push_back({absl::StrFormat("loss %.4f", loss_), 6});
  parts.push_back({absl::StrFormat("%.0f samples/s", samples_per_second(now)), 3});
  parts.push_back({absl::StrCat("ETA ", Eta(eta_seconds(now))), 4});
  parts.push_back({absl::StrCat(workers_, workers_ == 1 ? " worker" : " workers"), 2});
  return parts;
}

LogEvent Progress::ProgressEvent(absl::Time now) const {
  LogEvent event{.name = "progress", .text = FitLine(Parts(now), std::numeric_limits<int>::max()), .regular = true};
  event.fields = {{"step", static_cast<int64_t>(step_)},
                  {"loss", loss_},
                  {"samples_per_second", samples_per_second(now)},
                  {"eta_seconds", eta_seconds(now)},
                  {"workers", static_cast<int64_t>(workers_)}};
  const bool bounded = options_.end_step != std::numeric_limits<int64_t>::max();
  if (bounded) event.fields.emplace_back("end_step", static_cast<int64_t>(options_.end_step));
  return event;
}

void Progress::Tick(absl::Time now) {
  if (now < next_line_ || recent_.empty()) return;
  next_line_ = now + (options_.live ? kTerminalEvery : kPlainEvery);
  if (!options_.live) return options_.tell(ProgressEvent(now));
  live_shown_ = true;
  options_.show_live([parts = Parts(now)](int columns) { return FitLine(parts, columns); });
}

void Progress::Hide() {
  if (live_shown_) options_.show_live(nullptr);
  live_shown_ = false;
}

void Progress::Close(const std::string& checkpoint, const BestResult& best, bool done) {
  Hide();
  const int64_t step = static_cast<int64_t>(step_);
  if (!done) {
    return options_.tell(
        {.name = "stopped",
         .text = absl::StrCat("stopped at step ", step, "; checkpoint ", checkpoint,
                              "; the same command goes on from there"),
         .fields = {{"step", step}, {"checkpoint", checkpoint}, {"exit_code", int64_t{kExitPreempted}}}});
  }
  const double accuracy = ValueOf(board_.metrics(), "accuracy");
  if (accuracy > 0) {
    options_.tell({.name = "accuracy",
                   .text = absl::StrFormat("accuracy %.2f%%", 100 * accuracy),
                   .fields = {{"accuracy", accuracy}}});
  }
  if (!best.checkpoint.empty()) {
    options_.tell({.name = "best",
                   .text = absl::StrFormat("best: %s %.4f at step %d; checkpoint %s", board_.metric(), best.value,
                                           best.step, best.checkpoint),
                   .fields = {{"step", static_cast<int64_t>(best.step)},
                              {"metric", board_.metric()},
                              {"value", best.value},
                              {"checkpoint", best.checkpoint}}});
  }
  const bool early = step_ < options_.end_step && board_.ended_early();
  const std::string why = early ? absl::StrCat(", ", board_.metric(), " no longer improves") : "";
  const std::string how = step_ >= options_.end_step || early ? "done" : "stopped";
  options_.tell({.name = how,
                 .text = absl::StrCat(how, " at step ", step, why, "; checkpoint ", checkpoint, HowToLoad(checkpoint)),
                 .fields = {{"step", step}, {"checkpoint", checkpoint}, {"exit_code", int64_t{kExitDone}}},
                 .good = true});
}

}  // namespace lockstep::chief
