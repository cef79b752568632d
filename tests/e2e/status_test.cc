// `lockstep status` of real jobs in every state: running, done, stopped, failed, killed, silent.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/terminal.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

json StatusOf(const std::string& directory, int code = kExitDone) {
  const Result status = Run({"status", "--dir", directory, "--json"});
  CAPTURE(status.output);
  CHECK(status.code == code);
  return json::parse(status.output);
}

TEST_CASE("status: status tells of running, stopped, killed, silent and finished jobs", "[e2e]") {
  const std::string directory = TempPath("status");
  const Words words = {"run", kJob, "--workers", "1", "--dir", directory};
  {
    Watched run("status_stopped", words, Settings("100000steps"));
    run.WaitFor("saved step 10 ");
    const json running = StatusOf(directory);
    CHECK(running["running"] == true);
    CHECK(running["step"].is_number());
    run.process().Signal(SIGTERM);
    CHECK(run.End() == Ended{kExitPreempted, 0});
  }
  const json stopped = StatusOf(directory);
  CHECK(stopped["phase"] == "STOPPED");
  CHECK(stopped["exit_code"] == kExitPreempted);
  CHECK(stopped["end_step"] == 100000);
  CHECK(stopped["published_step"] >= 10);
  const Result text = Run({"status", "--dir", directory});
  CHECK_THAT(text.output,
             Contains("STOPPED  step ") && Contains("stop requested by SIGTERM") && Contains("goes on from"));

  {
    Watched run("status_silent", words, Settings("100000steps"));
    run.WaitFor("steps from step");
    const std::string holder = Read(directory + "/chief/lock");
    const int chief = std::atoi(holder.substr(holder.find("pid ") + 4).c_str());
    kill(chief, SIGSTOP);
    const json silent = StatusOf(directory, kExitChiefUnreachable);
    CHECK(silent["phase"] == "UNREACHABLE");
    CHECK_THAT(silent["reason"].get<std::string>(), Contains("the chief with pid " + std::to_string(chief)));
    run.process().Signal(SIGKILL);
    run.End();
  }
  // Dated back: a chief of another machine would have written within the last seconds.
  std::filesystem::last_write_time(directory + "/stats/worker_stats.json",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  const json killed = StatusOf(directory);
  CHECK(killed["phase"] == "NOT_RUNNING");
  CHECK(killed["exit_code"].is_null());
  CHECK_THAT(Run({"status", "--dir", directory}).output, Contains("2h") && Contains("ago"));

  const json done = StatusOf(FinishedJob());
  CHECK(done["phase"] == "DONE");
  CHECK(done["step"] == 20);
  CHECK(done["end_step"] == 20);
  CHECK(done["progressPercentage"] == 100);
  CHECK(Run({"stop", "--dir", FinishedJob()}).code == kExitDone);
}

TEST_CASE("status: status tells why a job failed, and how it goes on", "[e2e]") {
  const std::string directory = TempPath("failed");
  Words sets = Settings();
  sets.push_back("train.optimizer.lr=1000000");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", directory}, sets).code == kExitBadData);

  const json failed = StatusOf(directory);
  CHECK(failed["phase"] == "FAILED");
  CHECK(failed["running"] == false);
  CHECK(failed["exit_code"] == kExitBadData);
  CHECK_THAT(failed["reason"].get<std::string>(), Contains("lower train.optimizer.lr"));
  CHECK_THAT(Run({"status", "--dir", directory}).output,
             Contains("once the cause is mended, the same command goes on"));
}

TEST_CASE("status: status --watch follows a job to its end", "[e2e]") {
  const std::string directory = TempPath("watch");
  Watched run("watch_run", {"run", kJob, "--workers", "1", "--dir", directory}, Settings("100000steps"));
  run.WaitFor("listening on");
  Watched watch("watch", {"status", "--dir", directory, "--watch", "--json"});
  watch.WaitFor("\"running\":true");
  run.process().Signal(SIGTERM);

  CHECK(run.End() == Ended{kExitPreempted, 0});
  CHECK(watch.End() == Ended{});

  const Words lines = Lines(watch.Output());
  CHECK(lines.size() >= 2);
  for (const std::string& line : lines) CHECK(json::parse(line)["step"].is_number());
  CHECK(json::parse(lines.back())["phase"] == "STOPPED");

  const Result stopped = Run({"status", "--dir", directory, "--watch", "--json"});
  CHECK(stopped.code == kExitDone);
  REQUIRE(Lines(stopped.output).size() == 1);
  CHECK(json::parse(stopped.output)["phase"] == "STOPPED");
}

TEST_CASE("status: status of a job whose chief was killed just now cannot tell, and --watch waits for it", "[e2e]") {
  namespace fs = std::filesystem;
  LocalJob job("unreachable", kJob, Settings("100000steps"));
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(1);
  const std::string stats = job.directory() + "/stats/worker_stats.json";
  job.WaitForStatus("statistics", [&](const proto::StatusReply&) { return fs::exists(stats); });
  job.Kill("chief");
  // However long that took.
  fs::last_write_time(stats, fs::file_time_type::clock::now() + std::chrono::hours(1));

  const json unreachable = StatusOf(job.directory(), kExitChiefUnreachable);
  CHECK(unreachable["phase"] == "UNREACHABLE");
  CHECK(unreachable["exit_code"].is_null());
  CHECK_THAT(unreachable["reason"].get<std::string>(), Contains("wrote to the directory a moment ago"));
  Watched watch("unreachable_watch", {"status", "--dir", job.directory(), "--watch", "--json"});
  watch.WaitFor("UNREACHABLE");
  fs::last_write_time(stats, fs::file_time_type::clock::now() - std::chrono::hours(1));

  CHECK(watch.End() == Ended{});
  CHECK(json::parse(Lines(watch.Output()).back())["phase"] == "NOT_RUNNING");
}

TEST_CASE("status: status --watch of a chief that falls silent says so and ends with 69", "[e2e]") {
  const std::string directory = TempPath("watch_chief");
  Watched chief("watch_chief", {"chief", kJob, "--dir", directory}, Settings());
  chief.WaitFor("listening on");
  const std::string address = Lines(Read(directory + "/chief/address"))[0];
  Watched watch("watch_address",
                {"status", "--chief", address, "--token-file", directory + "/chief/token", "--watch", "--json"});
  watch.WaitFor("\"running\":true");

  chief.process().Signal(SIGKILL);

  CHECK(watch.End() == Ended{kExitChiefUnreachable, 0});
  CHECK_THAT(Lines(watch.Output()).back(), Contains("no chief answers at " + address));
}

TEST_CASE("status: status --watch keeps to a narrow terminal and redraws in place", "[e2e]") {
  constexpr int kColumns = 40;
  const std::string directory = TempPath("narrow");
  Watched run("narrow_run", {"run", kJob, "--workers", "1", "--dir", directory}, Settings("100000steps"));
  run.WaitFor("saved step 10 ");
  const Terminal terminal(kColumns);
  Process watch({kLockstep, "status", "--dir", directory, "--watch"}, terminal.ForChild(nullptr));
  std::string shown;
  const absl::Time until = absl::Now() + kLimit;
  const auto see = [&] {
    shown += terminal.Read();
    if (absl::Now() >= until) FAIL("waited in vain: " << shown);
  };
  while (!absl::StrContains(shown, "A\r\x1b[J")) see();
  run.process().Signal(SIGTERM);
  while (watch.Running()) see();
  shown += terminal.Read();

  CAPTURE(shown);
  CHECK(watch.Wait(kLimit) == Ended{});
  CHECK(run.End() == Ended{kExitPreempted, 0});
  CHECK_THAT(shown, StartsWith("\r\x1b[J"));  // nothing above the first picture is touched
  const std::vector<std::string> pictures = absl::StrSplit(shown, "\r\x1b[J", absl::SkipEmpty());
  REQUIRE(pictures.size() >= 2);
  for (size_t i = 0; i < pictures.size(); ++i) {
    const Words rows = absl::StrSplit(pictures[i], "\r\n");
    for (const std::string& row : rows) CHECK(row.size() < static_cast<size_t>(kColumns));
    // The next one begins where this one did.
    if (i + 1 < pictures.size()) CHECK(rows.back() == absl::StrCat("\x1b[", rows.size() - 1, "A"));
  }
  CHECK_THAT(pictures.front(), Contains("loss"));
  CHECK_THAT(pictures.back(), StartsWith("STOPPED  step "));
}

TEST_CASE("stats: the history of a job adds up to its statistics, also over a stop, and is drawn", "[e2e]") {
  const std::string directory = TempPath("history");
  const Words words = {"run", kJob, "--workers", "2", "--dir", directory};
  {
    Watched run("history_stopped", words, Settings("100000steps"));
    run.WaitFor("saved step 10 ");
    run.process().Signal(SIGTERM);
    CHECK(run.End() == Ended{kExitPreempted, 0});
  }
  {
    Watched run("history_again", words, Settings("100000steps"));
    run.WaitFor("steps from step");
    run.WaitFor("saved step");
    run.process().Signal(SIGTERM);
    CHECK(run.End() == Ended{kExitPreempted, 0});
  }

  const Result lines = Run({"stats", directory, "--json"});
  CHECK(lines.code == kExitDone);
  std::map<std::string, int64_t> steps, samples, joins;
  for (const std::string& text : Lines(lines.output)) {
    const json line = json::parse(text);
    const std::string worker = line["worker"];
    steps[worker] += line.value("steps", int64_t{0});
    samples[worker] += line.value("samples", int64_t{0});
    joins[worker] += line.value("joins", int64_t{0});
  }
  const json totals = json::parse(Read(directory + "/stats/worker_stats.json"));
  REQUIRE(totals["workers"].size() == 2);
  for (const json& worker : totals["workers"]) {
    const std::string name = worker["worker"];
    CAPTURE(name);
    CHECK(steps[name] > 0);
    CHECK(steps[name] == worker["steps"]);
    CHECK(samples[name] == worker["samples"]);
    CHECK(joins[name] == 2);
  }

  const Result drawn = Run({"stats", directory});
  CHECK(drawn.code == kExitDone);
  CHECK_THAT(drawn.output, Contains("samples/s") && Contains("4 joined (+)") && Contains("worker-1"));
  CHECK_THAT(Run({"stats", directory, "--worker", "worker-1"}).output, Contains("2 joined (+)"));
  CHECK(Run({"stats", directory, "--worker", "nobody"}).code != kExitDone);
}

TEST_CASE("status: a directory without a job ends with 74", "[e2e]") {
  const std::string empty = TempPath("empty");
  std::filesystem::create_directories(empty);
  const Result none = Run({"status", "--dir", empty});
  CHECK(none.code == kExitStorage);
  CHECK_THAT(none.output, Contains("no job in " + empty));
  CHECK(Run({"status", "--dir", empty + "/nowhere", "--watch"}).code == kExitStorage);
}

TEST_CASE("status: an address where nobody listens is named", "[e2e]") {
  const Result status = Run({"status", "--chief", "127.0.0.1:1", "--token-file", FinishedJob() + "/chief/token"});
  CHECK(status.code == kExitChiefUnreachable);
  CHECK_THAT(status.output, Contains("no chief answers at 127.0.0.1:1"));
}

}  // namespace
}  // namespace lockstep::e2e
