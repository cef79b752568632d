// How long a job of three workers, real processes, needs to step again after a fault, and where the time goes
// (recovery_phases.h). Prints one JSON object per kind of fault; every figure in milliseconds.
//
//   recovery_bench --job JOB [--fault FAULT]… [--rounds N] [--set key=value]… [--trace]
//     kill_worker (default)  SIGKILL of a worker, to the first step of both others without it
//     kill_chief             SIGKILL of the chief, which is started again at once, to its adopting the generation that
//                            steps on; `stood` is the longest step meanwhile, `detect` the time until the workers lost
//                            their sessions, `choose` until they have new ones, `form` until all are members again
//     term_worker            SIGTERM of a worker: it leaves at a boundary
//     stop_worker            SIGSTOP of a worker, for good: the job's heartbeat_timeout has to pass
//     join                   a third worker starts, to the first step of the two others with it
//     cut_worker             everything from and to a worker's host is lost, and no side is told: the same. Needs
//                            network namespaces
//     --kills N              the same as --rounds
//     --trace                what the survivors did meanwhile, on stderr
//
// The later of the two survivors counts; a step that the generation from before the fault still makes does not.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/bench/recovery_phases.h"
#include "tests/bench/session_record.h"
#include "tests/e2e/hosted_job.h"
#include "tests/e2e/local_job.h"

namespace lockstep::bench {
namespace {

constexpr int kWorkers = 3;
constexpr uint64_t kStepsBetween = 20;

struct Arguments {
  std::string job;
  std::vector<std::string> faults;
  std::vector<std::string> overrides = {"train.duration=10000000steps", "checkpoint.every=10000steps"};
  int rounds = 12;
  bool trace = false;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool valued = i + 1 < argc;
    if (word == "--trace") arguments.trace = true;
    if (word == "--job" && valued) arguments.job = argv[++i];
    if (word == "--fault" && valued) arguments.faults.emplace_back(argv[++i]);
    if (word == "--set" && valued) arguments.overrides.emplace_back(argv[++i]);
    if ((word == "--rounds" || word == "--kills") && valued) arguments.rounds = std::atoi(argv[++i]);
  }
  if (arguments.faults.empty()) arguments.faults = {"kill_worker"};
  if (arguments.job.empty() || arguments.rounds < 1)
    throw std::runtime_error("--job JOB and --rounds N >= 1 are needed");
  return arguments;
}

// What the two kinds of job have in common; workers are numbered from 0.
struct Job {
  std::string directory;
  std::function<void(int)> start_worker;
  std::function<void()> start_chief;
  std::function<e2e::Process&(int)> worker;
  std::function<e2e::Process&()> chief;
  std::function<void(const std::string&, const std::function<bool(const proto::StatusReply&)>&)> wait_for;
};

int Members(const proto::StatusReply& status) {
  return static_cast<int>(std::count_if(status.workers().begin(), status.workers().end(),
                                        [](const proto::WorkerStatus& one) { return one.rank() >= 0; }));
}

// Blocks until so many are members and stepped on together for a while.
void WaitUntilSettled(const Job& job, int members) {
  uint64_t since = 0;
  uint64_t counter = 0;
  job.wait_for(absl::StrCat(members, " members that step"), [&](const proto::StatusReply& status) {
    const bool settled = status.phase() == "RUNNING" && Members(status) == members;
    if (!settled || counter != status.generation().counter()) since = 0;
    counter = status.generation().counter();
    if (settled && since == 0) since = status.step() + 1;
    return since != 0 && status.step() >= since + kStepsBetween;
  });
}

void End(e2e::Process& process) {
  process.Signal(SIGKILL);
  process.Wait(absl::InfiniteDuration());
}

struct Moment {
  int64_t fault_ns = 0;
  int64_t over_ns = 0;  // the job steps as it should, seen from outside
};

// One fault and its end. Leaves the job with three members, but for `join`, which begins with two.
Moment Disturb(const Job& job, const std::string& fault, int victim, e2e::HostedJob* hosted) {
  Moment moment{.fault_ns = absl::GetCurrentTimeNanos()};
  if (fault == "kill_worker") {
    End(job.worker(victim));
  } else if (fault == "term_worker") {
    job.worker(victim).Signal(SIGTERM);
  } else if (fault == "stop_worker") {
    job.worker(victim).Signal(SIGSTOP);
  } else if (fault == "cut_worker") {
    hosted->hosts().Isolate(victim + 1);
  } else if (fault == "join") {
    job.start_worker(victim);
  } else if (fault == "kill_chief") {
    End(job.chief());
    job.start_chief();
    job.wait_for("a chief that adopts", [](const proto::StatusReply& status) {
      return status.phase() == "RUNNING" && Members(status) == kWorkers;
    });
    moment.over_ns = absl::GetCurrentTimeNanos();
    return moment;
  } else {
    throw std::runtime_error(absl::StrCat("unknown fault '", fault, "' (see the head of the file)"));
  }
  WaitUntilSettled(job, fault == "join" ? kWorkers : kWorkers - 1);
  moment.over_ns = absl::GetCurrentTimeNanos();
  if (fault == "cut_worker") hosted->hosts().Rejoin(victim + 1);
  return moment;
}

// After it three workers are members again, or two of which the next one joins.
void Restore(const Job& job, const std::string& fault, int victim) {
  if (fault == "join") {
    End(job.worker(victim));
    return WaitUntilSettled(job, kWorkers - 1);
  }
  if (fault != "kill_chief" && fault != "cut_worker") {
    End(job.worker(victim));
    job.start_worker(victim);
  }
  WaitUntilSettled(job, kWorkers);
}

void Trace(const std::vector<SessionRecord>& records, const Moment& moment) {
  for (const SessionRecord& record : records) {
    for (auto at = record.instants.lower_bound(moment.fault_ns); at != record.instants.upper_bound(moment.over_ns);
         ++at) {
      std::fprintf(stderr, "%9.3f ms  %s\n", static_cast<double>(at->first - moment.fault_ns) * 1e-6,
                   at->second.c_str());
    }
    std::fprintf(stderr, "\n");
  }
}

// By figure, one value per round.
using Figures = std::map<std::string, std::vector<double>>;

void AddChief(const std::vector<SessionRecord>& records, const Moment& moment, Figures& figures) {
  double stood = 0;
  ChiefReturn slowest;
  for (const SessionRecord& record : records) {
    const auto back = ChiefReturnOf(record, moment.fault_ns, moment.over_ns);
    if (back.has_value() && back->detect_ms + back->return_ms > slowest.detect_ms + slowest.return_ms) slowest = *back;
    stood = std::max(stood, LongestStepMs(record, moment.fault_ns, moment.over_ns));
  }
  const double total = static_cast<double>(moment.over_ns - moment.fault_ns) * 1e-6;
  figures["detect"].push_back(slowest.detect_ms);
  figures["choose"].push_back(slowest.return_ms);
  figures["form"].push_back(total - slowest.detect_ms - slowest.return_ms);
  figures["total"].push_back(total);
  figures["stood"].push_back(stood);
}

void AddWorker(const std::vector<SessionRecord>& records, const Moment& moment, Figures& figures) {
  Recovery slowest;
  int survivors = 0;
  for (const SessionRecord& record : records) {
    const auto recovery = RecoveryOf(record, moment.fault_ns);
    if (!recovery.has_value() || moment.fault_ns + recovery->total_ms * 1e6 > moment.over_ns) continue;
    ++survivors;
    if (recovery->total_ms > slowest.total_ms) slowest = *recovery;
  }
  if (survivors != kWorkers - 1) throw std::runtime_error(absl::StrCat(survivors, " workers lived through a fault"));
  for (size_t i = 0; i < kPhaseNames.size(); ++i) figures[kPhaseNames[i]].push_back(slowest.phase_ms[i]);
  figures["total"].push_back(slowest.total_ms);
  figures["stood"].push_back(slowest.stood_ms);
}

void Print(const std::string& fault, const Arguments& arguments, const std::vector<SessionRecord>& records,
           const Figures& figures) {
  std::vector<double> steps;
  for (const SessionRecord& record : records) {
    for (size_t i = 1; i < record.applied.size(); ++i) {
      if (!(record.applied[i].generation == record.applied[i - 1].generation)) continue;
      steps.push_back(static_cast<double>(record.applied[i].at_ns - record.applied[i - 1].at_ns) * 1e-6);
    }
  }
  const std::vector<double>& total = figures.at("total");
  std::printf("{\"bench\":\"recovery\",\"fault\":\"%s\",\"kills\":%d,\"median_ms\":%.1f,\"p95_ms\":%.1f,",
              fault.c_str(), arguments.rounds, Median(total), Percentile(total, 0.95));
  std::printf("\"best_ms\":%.1f,\"worst_ms\":%.1f,\"step_ms\":%.2f", Percentile(total, 1e-9), Percentile(total, 1),
              Median(steps));
  for (const auto& [name, values] : figures) {
    std::printf(",\"%s_p50_ms\":%.1f,\"%s_p95_ms\":%.1f", name.c_str(), Median(values), name.c_str(),
                Percentile(values, 0.95));
  }
  std::printf("}\n");
  std::fflush(stdout);
}

void Measure(const Job& job, const std::string& fault, const Arguments& arguments, e2e::HostedJob* hosted) {
  std::vector<Moment> moments;
  if (fault == "join") {
    WaitUntilSettled(job, kWorkers);
    End(job.worker(0));
    WaitUntilSettled(job, kWorkers - 1);
  } else {
    WaitUntilSettled(job, kWorkers);
  }
  for (int round = 0; round < arguments.rounds; ++round) {
    const int victim = fault == "join" ? 0 : round % kWorkers;
    moments.push_back(Disturb(job, fault, victim, hosted));
    Restore(job, fault, victim);
  }
  for (int i = 0; i < kWorkers; ++i) {
    if (job.worker(i).Running()) End(job.worker(i));
  }
  const std::vector<SessionRecord> records = ReadSessionRecords(job.directory + ".records");
  Figures figures;
  for (const Moment& moment : moments) {
    if (arguments.trace) Trace(records, moment);
    if (fault == "kill_chief") {
      AddChief(records, moment, figures);
    } else {
      AddWorker(records, moment, figures);
    }
  }
  Print(fault, arguments, records, figures);
}

void MeasureLocal(const std::string& fault, const Arguments& arguments) {
  e2e::LocalJob local("recovery", arguments.job, arguments.overrides);
  const Job job = {
      .directory = local.directory(),
      .start_worker = [&](int i) { local.StartWorker(i); },
      .start_chief = [&] { local.StartChief(kWorkers); },
      .worker = [&](int i) -> e2e::Process& { return local.worker(i); },
      .chief = [&]() -> e2e::Process& { return local.chief(); },
      .wait_for = [&](const std::string& what, const auto& condition) { local.WaitForStatus(what, condition); }};
  job.start_chief();
  for (int i = 0; i < kWorkers; ++i) job.start_worker(i);
  Measure(job, fault, arguments, nullptr);
}

void MeasureHosted(const std::string& fault, const Arguments& arguments) {
  e2e::HostedJob hosted("recovery", arguments.job, arguments.overrides, kWorkers);
  const Job job = {
      .directory = hosted.directory(),
      .start_worker = [&](int i) { hosted.StartWorker(i + 1); },
      .start_chief = [&] { hosted.StartChief(); },
      .worker = [&](int i) -> e2e::Process& { return hosted.worker(i + 1); },
      .chief = [&]() -> e2e::Process& { return hosted.chief(); },
      .wait_for = [&](const std::string& what, const auto& condition) { hosted.WaitForStatus(what, condition); }};
  Measure(job, fault, arguments, &hosted);
}

void Run(const Arguments& arguments) {
  // The network of this process is made before any other thread is.
  const bool cuts = std::count(arguments.faults.begin(), arguments.faults.end(), "cut_worker") > 0;
  const bool hosts = cuts && e2e::Hosts::Allowed("cut_worker");
  for (const std::string& fault : arguments.faults) {
    if (fault == "cut_worker") {
      if (hosts) MeasureHosted(fault, arguments);
    } else {
      MeasureLocal(fault, arguments);
    }
  }
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
