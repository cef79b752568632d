#include "chief/server/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

}  // namespace

void Progress::On(absl::Time now, const StepsAgreed& action) {
  if (action.step < step_) {
    recent_.clear();
    board_.GoBackTo(action.step);
  }
  step_ = action.step;
  if (!action.records.empty()) loss_ = action.records.back().loss;
  recent_.push_back({now, action.step});
  while (recent_.size() > 2 && now - recent_.front().when > kRateOver) recent_.pop_front();
}

void Progress::On(const EvaluationDone& action) { Print(board_.Add(action)); }

void Progress::On(const SampleTold& action) {
  // A model may write what a terminal would obey.
  std::string text = action.text;
  for (char& byte : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(byte)) && byte != '\n' && byte != '\t') byte = '?';
  }
  Print(absl::StrCat("sample of step ", action.step, ":\n", text));
}

void Progress::On(const WorkerStats& action) {
  checkpoint_seconds_[action.name] = ValueOf(action.stats, "checkpoint_seconds");
}

double Progress::CheckpointSeconds() const {
  double total = 0;
  for (const auto& [worker, seconds] : checkpoint_seconds_) total = std::max(total, seconds);
  return total;
}

void Progress::SaveOpened(absl::Time now, const SnapshotId& snapshot) { opened_[snapshot] = now; }

void Progress::SavePublished(absl::Time now, const SnapshotId& snapshot) {
  const auto opened = opened_.find(snapshot);
  const absl::Duration took = opened == opened_.end() ? absl::ZeroDuration() : now - opened->second;
  opened_.clear();
  const double stalled = std::max(0.0, CheckpointSeconds() - checkpoint_seconds_before_);
  checkpoint_seconds_before_ = CheckpointSeconds();
  Print(absl::StrFormat("saved step %d  %.1f MiB in %.2f s, stalled %.1f ms", snapshot.step, options_.state_mib,
                        absl::ToDoubleSeconds(took), 1000 * stalled));
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

std::string Progress::Line(absl::Time now) const {
  const double epoch = static_cast<double>(step_ * options_.global_batch) / static_cast<double>(options_.epoch_samples);
  const bool bounded = options_.end_step != std::numeric_limits<int64_t>::max();
  const std::string share =
      bounded ? absl::StrFormat("/%d  %d%%", options_.end_step, 100 * step_ / std::max<uint64_t>(options_.end_step, 1))
              : "";
  return absl::StrFormat("step %d%s  ep %.1f  loss %.4f  %.0f samples/s  ETA %s  %d worker%s", step_, share, epoch,
                         loss_, samples_per_second(now), Eta(eta_seconds(now)), workers_, workers_ == 1 ? "" : "s");
}

void Progress::Tick(absl::Time now) {
  if (now < next_line_ || recent_.empty()) return;
  next_line_ = now + (options_.terminal ? kTerminalEvery : kPlainEvery);
  if (options_.terminal) {
    options_.write(absl::StrCat("\r", Line(now), "\x1b[K"));
    line_open_ = true;
  } else {
    options_.write(absl::StrCat(Line(now), "\n"));
  }
}

void Progress::EndLine() {
  if (line_open_) options_.write("\n");
  line_open_ = false;
}

void Progress::Print(const std::string& line) {
  EndLine();
  options_.write(absl::StrCat(line, "\n"));
}

void Progress::Close(const std::string& checkpoint, const std::string& best) {
  const double accuracy = ValueOf(board_.metrics(), "accuracy");
  if (accuracy > 0) Print(absl::StrFormat("accuracy %.2f%%", 100 * accuracy));
  if (!best.empty()) {
    Print(absl::StrFormat("best: %s %.4f at step %d; checkpoint %s", board_.metric(), board_.best_value(),
                          board_.best_step(), best));
  }
  const bool early = step_ < options_.end_step && board_.ended_early();
  const std::string why = early ? absl::StrCat(", ", board_.metric(), " no longer improves") : "";
  Print(absl::StrCat(step_ >= options_.end_step || early ? "done" : "stopped", " at step ", step_, why, "; checkpoint ",
                     checkpoint));
  Print(absl::StrCat("load it in PyTorch:\n  import glob, safetensors.torch\n  files = glob.glob(\"", checkpoint,
                     "/model*.safetensors\")\n  model.load_state_dict({k: v for f in files for k, v in "
                     "safetensors.torch.load_file(f).items()})"));
}

}  // namespace lockstep::chief
