// `lockstep logs`: what the chiefs of a job said, from its directory or bucket, also after they ended.
#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/logs/chief_logs.h"
#include "common/job/units.h"
#include "common/job_place/job_place.h"
#include "common/log/output.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_state.h"
#include "deploy/cli/log_view.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kLogDeadline = absl::Seconds(2);
constexpr absl::Duration kFollowEvery = absl::Seconds(1);

struct Question {
  std::string directory;
  std::string level = "info";
  std::string worker;
  std::string since;
  size_t last = 0;  // 0: all
  bool follow = false;
  bool json = false;
};

absl::StatusOr<LogFilter> FilterOf(const Question& question) {
  LogFilter filter;
  filter.worker = question.worker;
  const std::optional<LogLevel> level = ParseLogLevel(question.level);
  if (!level.has_value() || *level == LogLevel::debug) {
    return absl::InvalidArgumentError(
        absl::StrCat("--level '", question.level, "': chiefs keep lines of the levels info, warn and error"));
  }
  filter.level = *level;
  if (question.since.empty()) return filter;
  const absl::StatusOr<absl::Duration> since = job::ParseTime(question.since);
  if (!since.ok()) return absl::InvalidArgumentError(absl::StrCat("--since: ", since.status().message()));
  filter.since_ms = absl::ToUnixMillis(absl::Now() - *since);
  return filter;
}

// Shows lines as they come.
class View {
 public:
  View(const Question& question, LogFilter filter, const Storage& storage)
      : question_(question),
        filter_(std::move(filter)),
        storage_(storage),
        colour_(!question.json && StyleOf(1).colour) {}

  // Shows new lines; the first call shows the newest ones, as many as were requested.
  absl::Status ShowNew() {
    std::deque<LogRecord> fresh;
    LS_RETURN_IF_ERROR(reader_.ReadNew(storage_, [&](chief::ChiefLogLine line) {
      ++read_;
      if (!IsWanted(filter_, line)) return;
      fresh.push_back(std::move(line));
      if (first_ && question_.last > 0 && fresh.size() > question_.last) fresh.pop_front();
    }));
    first_ = false;
    for (const LogRecord& line : fresh) Print(line);
    std::cout << std::flush;
    return absl::OkStatus();
  }

  // Of a job that failed: why, behind everything else.
  void ShowEnd(const JobState& state) {
    const int code = state.exit_code.value_or(kExitDone);
    if (last_word_ || !HasEnded(state) || code == kExitDone || code == kExitPreempted) return;
    LogRecord record;
    record.at_ms = absl::ToUnixMillis(state.when == absl::InfinitePast() ? absl::Now() : state.when);
    record.level = LogLevel::error;
    record.part = "chief";
    record.message = absl::StrCat("exit ", code, ": ", state.reason);
    record.fields = {{"exit_code", int64_t{code}}};
    Print(record);
  }

  int64_t read() const { return read_; }
  int64_t shown() const { return shown_; }
  int damaged() const { return reader_.damaged(); }

 private:
  void Print(const LogRecord& record) {
    ++shown_;
    last_word_ = IsLastWord(record);
    std::cout << (question_.json ? LogRecordJson(record) : LogViewLine(record, colour_, absl::LocalTimeZone())) << "\n";
  }

  const Question& question_;
  const LogFilter filter_;
  const Storage& storage_;
  const bool colour_;
  chief::ChiefLogReader reader_;
  bool first_ = true;
  bool last_word_ = false;  // the newest line is one
  int64_t read_ = 0;
  int64_t shown_ = 0;
};

absl::Status ShowLogs(const Question& question) {
  LS_ASSIGN_OR_RETURN(LogFilter filter, FilterOf(question));
  absl::StatusOr<JobState> state = ReadJobState(question.directory, kLogDeadline);
  // A chief that nobody here may ask says nothing of the lines.
  if (absl::IsNotFound(state.status())) return state.status();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(question.directory));
  View view(question, std::move(filter), place->storage());
  LS_RETURN_IF_ERROR(view.ShowNew());
  while (question.follow && std::cout && !(state.ok() && HasEnded(*state))) {
    absl::SleepFor(kFollowEvery);
    // In this order: what an ended job said last is there.
    state = ReadJobState(question.directory, kLogDeadline);
    LS_RETURN_IF_ERROR(view.ShowNew());
  }
  if (state.ok()) view.ShowEnd(*state);
  if (view.read() == 0) {
    return absl::NotFoundError(
        absl::StrCat("no chief of ", question.directory,
                     " has kept a line yet: a chief that runs adds to its log every two seconds"));
  }
  if (view.shown() == 0) std::cerr << "lockstep: none of " << view.read() << " lines is asked for\n";
  if (view.damaged() > 0) std::cerr << "lockstep: " << view.damaged() << " lines of the log were damaged\n";
  return absl::OkStatus();
}

int LogExitCode(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  return Fail(status, absl::IsInvalidArgument(status) ? kExitUsage : StorageExitCode(status));
}

}  // namespace

void AddLogs(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("logs", "What the chiefs of a job said, while it runs and afterwards");
  auto question = std::make_shared<Question>();
  AddPlace(*command, "directory", question->directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  command->add_flag("--follow", question->follow, "Go on with what is said until the job has ended");
  command->add_option("--level", question->level, "Lines as important as this: info, warn or error")
      ->capture_default_str();
  command->add_option("--worker", question->worker, "Lines about this worker alone");
  command->add_option("--since", question->since, "Lines that are not older than this, as 10m");
  command->add_option("--last", question->last, "The newest lines alone, so many of them")->check(CLI::PositiveNumber);
  command->add_flag("--json", question->json, "One object per line, for other programs");
  command->callback([question, &exit_code] { exit_code = LogExitCode(ShowLogs(*question)); });
}

}  // namespace lockstep::cli
