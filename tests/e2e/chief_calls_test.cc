// A chief that is hit at each of the system calls by which it changes files, from its start over its saves to its end:
// killed, given an error, or held until its successor has committed. Nothing committed is lost, and the weights are
// those of an undisturbed run.
#include <signal.h>

#include <cerrno>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/net/chief_channel.h"
#include "tests/e2e/traced_job.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;

namespace fs = std::filesystem;

// From which step a chief went on, as it says when it listens; -1: it did not come to that.
int64_t StepTakenUp(const std::string& output) {
  constexpr char kBefore[] = ", from step ";
  const size_t at = output.find(kBefore);
  return at == std::string::npos ? -1 : std::stoll(output.substr(at + sizeof kBefore - 1));
}

bool IsBelow(const std::string& path, const std::string& folder) { return absl::StartsWith(path, folder + "/"); }

struct Kill {
  int call = 0;
  bool after = false;      // and not before
  bool of_worker = false;  // too
  bool alone = false;      // no worker is there yet
};

void KillAt(TracedJob& job, const Kill& how, Coverage& coverage) {
  job.StartTraced({.kind = how.after ? HitKind::kKillAfter : HitKind::kKillBefore, .call = how.call});
  if (!how.alone) job.StartWorker();
  const Ended ended = job.EndOfTraced();
  INFO(job.TracedOutput());
  if (!job.traced().hit().has_value()) {  // it made fewer calls this time
    CHECK(ended == Ended{});
    return job.CheckDirectory();
  }
  coverage.Add(*job.traced().hit());
  INFO("killed at " << job.traced().hit()->Text());
  CHECK(ended == Ended{0, SIGKILL});
  const Logged logged = job.CheckLog();

  // It had claimed its term, and died before its second record, which would have named what it found.
  const bool between = how.alone && logged.term == 2 && logged.newest == 0;
  if (between) job.MaySetAside("step-000000008-unlisted-term-000003");
  const bool needs_worker = (how.of_worker || how.alone) && logged.newest < TracedJob::last_step();
  if (how.of_worker) job.KillWorker();
  job.StartChief();
  if (needs_worker) job.StartWorker();

  job.CheckDone();
  CHECK(StepTakenUp(job.chief().Output()) >= logged.newest);
}

TEST_CASE("calls: a chief that is killed at any of them has lost nothing that was committed", "[e2e]") {
  if (!TracedProcess::Allowed("a chief killed at its system calls")) return;
  const int calls = static_cast<int>(TracedJob::UndisturbedCalls().size());
  const Spread spread = SpreadOr({.first = 7, .every = 60});
  Coverage coverage("killed");
  int turn = 0;
  for (int call = spread.first; call <= calls; call += spread.every, ++turn) {
    CAPTURE(call);
    TracedJob job;
    KillAt(job, {.call = call, .after = turn % 3 == 2, .of_worker = turn % 2 == 1}, coverage);
  }
  CHECK(coverage.hits() > 0);
}

// A directory whose chief was killed when it had given a checkpoint its name and the log did not have it yet: the
// second one, after that of step 0.
const TracedJob& KilledBeforeItsRecord() {
  static TracedJob job;
  static const bool made = [] {
    const auto publishes = [](const TracedCall& call) { return absl::StrContains(call.path, " -> checkpoints/step-"); };
    job.StartTraced({.kind = HitKind::kKillAfter, .call = 2, .counts = publishes});
    job.StartWorker();
    REQUIRE(job.EndOfTraced() == Ended{0, SIGKILL});
    job.KillWorker();
    fs::remove(SocketBeside(job.directory() + "/chief/address"));  // it cannot be copied
    return job.CheckLog().newest == 0;
  }();
  REQUIRE(made);
  return job;
}

int CallsOfTakingOver(const std::string& original) {
  TracedJob job(original);
  job.StartTraced({});
  job.KillTracedOnceItListens();
  CHECK(job.CheckLog().newest > 0);  // the next chief takes it up
  return static_cast<int>(job.traced().calls().size());
}

TEST_CASE("calls: a chief that is killed at any of them while it takes over has lost nothing either", "[e2e]") {
  if (!TracedProcess::Allowed("a chief killed while it takes over")) return;
  const std::string& original = KilledBeforeItsRecord().directory();
  const int calls = CallsOfTakingOver(original);
  const Spread spread = SpreadOr({.first = 5, .every = 30});
  Coverage coverage("killed while taking over");
  int turn = 0;
  for (int call = spread.first; call <= calls; call += spread.every, ++turn) {
    CAPTURE(call);
    TracedJob job(original);
    KillAt(job, {.call = call, .after = turn % 3 == 2, .alone = true}, coverage);
  }
  CHECK(coverage.hits() > 0);
}

// Whether a file that the storage said not to hold has its place nevertheless: its bytes may be lost although a later
// fsync says nothing.
bool IsPublished(const TracedJob& job, const std::string& unsynced) {
  if (unsynced.empty() || fs::is_directory(unsynced)) return false;
  const bool in_log = IsBelow(unsynced, job.directory() + "/log") && !absl::StrContains(unsynced, "/tmp-");
  return in_log || IsBelow(unsynced, job.directory() + "/checkpoints");
}

void FailAt(int call, int error, Coverage& coverage) {
  TracedJob job;
  job.StartTraced({.kind = HitKind::kFail, .call = call, .error = error});
  job.StartWorker();
  const Ended ended = job.EndOfTraced();
  INFO(job.TracedOutput());
  if (!job.traced().hit().has_value()) {
    CHECK(ended == Ended{});
    return job.CheckDirectory();
  }
  coverage.Add(*job.traced().hit());
  INFO(job.traced().hit()->Text() << " failed with " << error);
  CHECK_FALSE(IsPublished(job, job.traced().FileOfFailedSync()));
  if (ended == Ended{}) return job.CheckDirectory();

  // A job that does not run yet ends, and says why.
  CHECK(ended == Ended{kExitStorage, 0});
  CHECK_THAT(job.TracedOutput(), !Contains("listening on") && Contains(job.directory()));
  job.StartChief();
  job.CheckDone();
}

TEST_CASE("calls: one that fails costs nothing", "[e2e]") {
  if (!TracedProcess::Allowed("a chief whose system calls fail")) return;
  const int calls = static_cast<int>(TracedJob::UndisturbedCalls().size());
  const Spread spread = SpreadOr({.first = 18, .every = 60});
  Coverage coverage("failed");
  int turn = 0;
  for (int call = spread.first; call <= calls; call += spread.every, ++turn) {
    CAPTURE(call);
    FailAt(call, turn % 2 == 0 ? ENOSPC : EIO, coverage);
  }
  CHECK(coverage.hits() > 0);
}

// What the successor wrote must be as it was; what the old chief had open before may grow. `follows`: the old chief had
// not claimed the job and does so now, so that what tells of the present chief is its own.
void CheckUnchanged(const Files& at_hold, const Files& at_release, const Files& after, bool follows) {
  for (const auto& [path, content] : at_release) {
    const auto before = at_hold.find(path);
    const bool by_successor = !follows && (before == at_hold.end() || before->second != content);
    if (!by_successor && !IsBelow(path, "checkpoints") && !IsBelow(path, "log")) continue;
    CAPTURE(path);
    const auto now = after.find(path);
    REQUIRE(now != after.end());
    CHECK(now->second == content);
  }
  for (const auto& [path, content] : after) {
    CAPTURE(path);
    CHECK((at_release.contains(path) || !(IsBelow(path, "checkpoints") || IsBelow(path, "set_aside"))));
  }
}

// `early`: the old chief goes on while its successor trains; else when that has ended.
void HoldAt(int call, bool early, Coverage& coverage) {
  TracedJob job;
  job.StartTraced({.kind = HitKind::kHold, .call = call});
  job.StartWorker();
  if (!job.WaitUntilHeld()) {
    CHECK(job.EndOfTraced() == Ended{});
    return job.CheckDirectory();
  }
  coverage.Add(*job.traced().hit());
  INFO("held at " << job.traced().hit()->Text());
  const Logged logged = job.CheckLog();
  const bool was_done = logged.newest == TracedJob::last_step();
  job.KillWorker();
  job.ForgetLock();
  const Files at_hold = job.ReadFiles();

  job.StartChief();
  job.chief().WaitFor("listening on");
  if (!was_done) job.StartWorker();
  if (early && !was_done) {
    job.chief().WaitFor("saved step");
    job.traced().Release();
    job.CheckDone();
  } else {
    job.CheckDone();
    const Files at_release = job.ReadFiles();
    job.traced().Release();
    job.EndOfTraced();
    CheckUnchanged(at_hold, at_release, job.ReadFiles(), /*follows=*/logged.term == 0);
    job.CheckDirectory();
  }

  const Ended ended = job.EndOfTraced();
  INFO(job.TracedOutput());
  if (logged.term > 0 && !was_done) {
    CHECK(ended == Ended{kExitFenced, 0});
  } else {  // it had not claimed the job yet, or had nothing left to write
    CHECK((ended == Ended{kExitFenced, 0} || ended == Ended{} || ended == Ended{kExitBadJob, 0}));
  }
}

TEST_CASE("calls: a chief that is held at any of them until its successor has committed does no harm", "[e2e]") {
  if (!TracedProcess::Allowed("a chief held at its system calls")) return;
  const int calls = static_cast<int>(TracedJob::UndisturbedCalls().size());
  const Spread spread = SpreadOr({.first = 29, .every = 60});
  Coverage coverage("held");
  int turn = 0;
  for (int call = spread.first; call <= calls; call += spread.every, ++turn) {
    CAPTURE(call);
    HoldAt(call, turn % 2 == 0, coverage);
  }
  CHECK(coverage.hits() > 0);
}

TEST_CASE("calls: a chief that another has followed before the record of its end ends with 76", "[e2e]") {
  if (!TracedProcess::Allowed("a chief held before the record of its end")) return;
  TracedJob job;
  const std::string last = absl::StrCat(job.directory(), "/checkpoints/", layout::StepName(TracedJob::last_step()));
  const auto appends = [last](const TracedCall& call) {
    return absl::StrContains(call.path, " -> log/") && fs::exists(last);
  };
  job.StartTraced({.kind = HitKind::kHold, .call = 2, .counts = appends});  // the first one commits that checkpoint
  job.StartWorker();
  REQUIRE(job.WaitUntilHeld());
  CHECK(job.CheckLog().newest == TracedJob::last_step());
  job.KillWorker();
  job.ForgetLock();
  job.StartChief();
  job.CheckDone();

  job.traced().Release();

  CHECK(job.EndOfTraced() == Ended{kExitFenced, 0});
  CHECK_THAT(job.TracedOutput(), Contains("in place of 0"));
  job.CheckDirectory();
}

}  // namespace
}  // namespace lockstep::e2e
