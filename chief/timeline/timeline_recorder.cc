#include "chief/timeline/timeline_recorder.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "chief/stats/line_files.h"

namespace lockstep::chief {
const char* ChangeName(WorkerChange change) {
  switch (change) {
    case WorkerChange::kJoined:
      return "joined";
    case WorkerChange::kLost:
      return "lost";
    case WorkerChange::kPreempted:
      return "left";
    case WorkerChange::kCrashed:
      return "crashed";
    case WorkerChange::kRefused:
      return "refused";
    case WorkerChange::kDigestMismatch:
      return "differed";
  }
  return "changed";
}

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kAdopting:
      return "ADOPTING";
    case Phase::kWaiting:
      return "WAITING";
    case Phase::kForming:
      return "FORMING";
    case Phase::kRunning:
      return "RUNNING";
    case Phase::kBreaking:
      return "BREAKING";
    case Phase::kFinishing:
      return "FINISHING";
    case Phase::kDone:
      return "DONE";
    case Phase::kEnded:
      return "ENDED";
  }
  return "UNKNOWN";
}

void TimelineRecorder::Saw(absl::Time wall, const std::vector<Action>& actions, const Present& present) {
  step_ = present.agreed_step;
  for (const Action& action : actions) {
    std::visit([&](const auto& alternative) { On(wall, alternative); }, action);
  }
  const bool formed = present.generation != generation_ && !present.generation.IsNone();
  generation_ = present.generation;
  if (formed) {
    TimelineEntry entry = Entry("generation");
    for (std::string& member : present.members()) entry.add_workers(std::move(member));
    Add(wall, std::move(entry));
  }
  if (phase_told_ && present.phase == phase_) return;
  phase_ = present.phase;
  phase_told_ = true;
  TimelineEntry entry = Entry("phase");
  entry.set_text(PhaseName(phase_));
  Add(wall, std::move(entry));
}

void TimelineRecorder::ChiefStarted(absl::Time wall, int64_t step, absl::string_view text) {
  step_ = static_cast<uint64_t>(step);
  TimelineEntry entry = Entry("chief_started");
  entry.set_text(std::string(text));
  Add(wall, std::move(entry));
}

void TimelineRecorder::ChiefEnded(absl::Time wall, int32_t exit_code, absl::string_view reason) {
  TimelineEntry entry = Entry("chief_ended");
  entry.set_exit_code(exit_code);
  entry.set_text(std::string(reason));
  Add(wall, std::move(entry));
}

void TimelineRecorder::Saved(absl::Time wall, int64_t step, absl::string_view path) {
  TimelineEntry entry = Entry("saved");
  entry.set_step(step);
  entry.set_text(std::string(path));
  Add(wall, std::move(entry));
}

void TimelineRecorder::Evaluated(absl::Time wall, int64_t step, absl::string_view values) {
  TimelineEntry entry = Entry("evaluated");
  entry.set_step(step);
  entry.set_text(std::string(values));
  Add(wall, std::move(entry));
}

void TimelineRecorder::Warned(absl::Time wall, absl::string_view text) {
  TimelineEntry entry = Entry("warning");
  entry.set_text(std::string(text));
  Add(wall, std::move(entry));
}

std::string TimelineRecorder::Take() {
  if (left_out_ > 0) {
    lines_ += JsonLine([&] {
      TimelineEntry entry = Entry("warning");
      entry.set_text(absl::StrCat(left_out_, " entries are missing here: the storage took none for long"));
      return entry;
    }());
    left_out_ = 0;
  }
  return std::exchange(lines_, "");
}

TimelineEntry TimelineRecorder::Entry(const char* kind) const {
  TimelineEntry entry;
  entry.set_kind(kind);
  entry.set_term(term_);
  entry.set_step(static_cast<int64_t>(step_));
  if (!generation_.IsNone()) entry.set_generation(generation_.ToString());
  return entry;
}

void TimelineRecorder::Add(absl::Time wall, TimelineEntry entry) {
  if (lines_.size() >= kMostBytes) {
    ++left_out_;
    return;
  }
  entry.set_at_ms(absl::ToUnixMillis(wall));
  if (entry.text().size() > kLongestText) {
    size_t end = kLongestText;
    while (end > 0 && (entry.text()[end] & 0xc0) == 0x80) --end;  // not within a character
    entry.set_text(absl::StrCat(entry.text().substr(0, end), "…"));
  }
  lines_ += JsonLine(entry);
}

void TimelineRecorder::On(absl::Time wall, const OpenSave& action) {
  TimelineEntry entry = Entry("save_began");
  entry.set_step(static_cast<int64_t>(action.snapshot.step));
  Add(wall, std::move(entry));
}

void TimelineRecorder::On(absl::Time wall, const AbandonSave& action) {
  TimelineEntry entry = Entry("save_failed");
  entry.set_step(static_cast<int64_t>(action.snapshot.step));
  entry.set_text(action.reason);
  Add(wall, std::move(entry));
}

void TimelineRecorder::On(absl::Time wall, const WentBack& action) {
  TimelineEntry entry = Entry("repaired");
  entry.set_step(static_cast<int64_t>(action.step));
  entry.set_text(absl::StrCat("replicas differed at step ", action.found_at));
  for (const std::string& name : action.names) entry.add_workers(name);
  Add(wall, std::move(entry));
}

void TimelineRecorder::On(absl::Time wall, const WorkerChanged& action) {
  TimelineEntry entry = Entry(ChangeName(action.change));
  entry.set_worker(action.name);
  entry.set_text(action.reason);
  Add(wall, std::move(entry));
}

void TimelineRecorder::On(absl::Time wall, const Announce& action) {
  if (action.level == Level::kInfo) return;
  TimelineEntry entry = Entry(action.level == Level::kError ? "error" : "warning");
  entry.set_text(action.text);
  Add(wall, std::move(entry));
}

}  // namespace lockstep::chief
