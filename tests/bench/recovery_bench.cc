// Time from SIGKILL of one of three workers to the next step that the survivors apply without it, as real processes.
// The survivor's record holds when it applied each step; a step of the generation that the dead worker was in does not
// count, and the later of the two survivors does. Prints one JSON object.
//
//   recovery_bench --job JOB [--kills N] [--trace]     --trace: what the survivors did meanwhile, on stderr
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/bench/session_record.h"
#include "tests/e2e/local_job.h"

namespace lockstep::bench {
namespace {

constexpr int kWorkers = 3;
constexpr uint64_t kStepsBetween = 20;

struct Arguments {
  std::string job;
  int kills = 12;
  bool trace = false;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--trace") == 0) arguments.trace = true;
    if (std::strcmp(argv[i], "--job") == 0 && i + 1 < argc) arguments.job = argv[++i];
    if (std::strcmp(argv[i], "--kills") == 0 && i + 1 < argc) arguments.kills = std::atoi(argv[++i]);
  }
  if (arguments.job.empty() || arguments.kills < 1) throw std::runtime_error("--job JOB and --kills N >= 1 are needed");
  return arguments;
}

// Blocks until all workers are members and stepped on together for a while.
void WaitUntilSettled(e2e::LocalJob& job) {
  uint64_t since = 0;
  job.WaitForStatus("three members that step", [&since](const proto::StatusReply& status) {
    const auto members = std::count_if(status.workers().begin(), status.workers().end(),
                                       [](const proto::WorkerStatus& worker) { return worker.rank() >= 0; });
    if (members != kWorkers) {
      since = 0;
    } else if (since == 0) {
      since = status.step() + 1;
    }
    return since != 0 && status.step() >= since + kStepsBetween;
  });
}

// Milliseconds from the kill to the survivor's first step of a later generation; negative: this process was no
// survivor of that kill.
double RecoveryMs(const SessionRecord& record, int64_t killed_ns, bool trace) {
  const auto after = std::find_if(record.applied.begin(), record.applied.end(),
                                  [&](const AppliedStep& step) { return step.at_ns > killed_ns; });
  if (after == record.applied.begin() || after == record.applied.end()) return -1;
  const Generation broken = (after - 1)->generation;
  const auto next =
      std::find_if(after, record.applied.end(), [&](const AppliedStep& step) { return !(step.generation == broken); });
  if (next == record.applied.end()) return -1;
  if (trace) {
    for (auto at = record.instants.lower_bound(killed_ns); at != record.instants.upper_bound(next->at_ns); ++at) {
      std::fprintf(stderr, "%9.3f ms  %s\n", static_cast<double>(at->first - killed_ns) * 1e-6, at->second.c_str());
    }
    std::fprintf(stderr, "\n");
  }
  return static_cast<double>(next->at_ns - killed_ns) * 1e-6;
}

void Run(const Arguments& arguments) {
  std::vector<int64_t> kills;
  std::vector<double> recoveries;
  std::vector<double> steps;
  e2e::LocalJob job("recovery", arguments.job, {"train.duration=10000000steps", "checkpoint.every=10000steps"});
  job.StartChief(kWorkers);
  for (int i = 0; i < kWorkers; ++i) job.StartWorker(i);
  for (int kill = 0; kill < arguments.kills; ++kill) {
    WaitUntilSettled(job);
    const int victim = kill % kWorkers;
    kills.push_back(absl::GetCurrentTimeNanos());
    job.Kill(absl::StrCat("worker-", victim));
    job.WaitForStep(job.Status().value().step() + kStepsBetween);
    job.StartWorker(victim);
  }
  job.KillEverything();

  const std::vector<SessionRecord> records = ReadSessionRecords(job.directory() + ".records");
  for (const SessionRecord& record : records) {
    for (size_t i = 1; i < record.applied.size(); ++i) {
      if (!(record.applied[i].generation == record.applied[i - 1].generation)) continue;
      steps.push_back(static_cast<double>(record.applied[i].at_ns - record.applied[i - 1].at_ns) * 1e-6);
    }
  }
  for (const int64_t killed : kills) {
    int survivors = 0;
    double slowest = 0;
    for (const SessionRecord& record : records) {
      const double ms = RecoveryMs(record, killed, arguments.trace);
      if (ms < 0) continue;
      ++survivors;
      slowest = std::max(slowest, ms);
    }
    if (survivors != kWorkers - 1) throw std::runtime_error(absl::StrCat(survivors, " workers survived a kill"));
    recoveries.push_back(slowest);
  }
  std::printf(
      "{\"bench\":\"recovery\",\"kills\":%d,\"median_ms\":%.1f,\"p95_ms\":%.1f,\"best_ms\":%.1f,\"worst_ms\":%.1f,"
      "\"step_ms\":%.2f}\n",
      arguments.kills, Median(recoveries), Percentile(recoveries, 0.95), Percentile(recoveries, 1e-9),
      Percentile(recoveries, 1), Median(steps));
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  try {
    lockstep::bench::Run(lockstep::bench::Parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recovery_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
