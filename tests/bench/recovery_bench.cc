// How long a job of three workers, real processes, needs to step again after a fault, and where the time goes
// (recovery_phases.h). Prints one JSON object per kind of fault; every figure in milliseconds.
//
//   recovery_bench --job JOB [--fault FAULT]… [--rounds N] [--set key=value]… [--trace]
//     kill_worker (default)  SIGKILL of a worker, to the first step of both others without it
//     kill_chief             SIGKILL of the chief, which is started again at once, to its adopting the generation that
//                            steps on; `stood` is the longest step meanwhile, `detect` the time until the workers lost
//                            their sessions, `choose` until they have new ones, `form` until all are members again
//     term_worker            SIGTERM of a worker: it leaves at a boundary
//     stop_worker            SIGSTOP of a worker, until the others step without it: a heartbeat_timeout of 2 s has to
//                            pass (the usual one is 5 s)
//     join                   a third worker starts, to the first step of the two others with it
//     cut_worker             everything from and to a worker's host is lost, and no side is told: the same. Needs
//                            network namespaces
//     --kills N              the same as --rounds
//     --settle N             steps of all members between two faults (20). A worker that is lost within 20 steps of its
//                            joining again and again has to wait; it is each one's turn in every third round
//     --trace                what the survivors did meanwhile, on stderr
//
// The later of the two survivors counts; a step that the generation from before the fault still makes does not. Faults
// come at moments spread over a step. A round that cannot be judged (one of the two did not live through it) is played
// again, and counted as `missed`; where the job does not step again, what was measured is printed, and the exit code
// is 1.
#include <signal.h>

#include <algorithm>
#include <cmath>
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
constexpr int kPasses = 3;  // of a kind of fault, until enough rounds could be judged
constexpr uint64_t kStepsAfterFault = 20;
constexpr double kGoldenRatio = 0.6180339887;  // its multiples, without their whole part, are spread evenly

struct Arguments {
  std::string job;
  std::vector<std::string> faults;
  std::vector<std::string> overrides = {"train.duration=10000000steps", "checkpoint.every=10000steps"};
  int rounds = 12;
  uint64_t settle = 20;
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
    if (word == "--settle" && valued) arguments.settle = static_cast<uint64_t>(std::atoi(argv[++i]));
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

// Blocks until so many are members and made `steps` together. Returns how long one took.
absl::Duration WaitUntilSettled(const Job& job, int members, uint64_t steps) {
  uint64_t since = 0;
  uint64_t made = 0;
  uint64_t counter = 0;
  absl::Time begin;
  job.wait_for(absl::StrCat(members, " members that step"), [&](const proto::StatusReply& status) {
    const bool settled = status.phase() == "RUNNING" && Members(status) == members;
    if (!settled || counter != status.generation().counter()) since = 0;
    counter = status.generation().counter();
    if (settled && since == 0) {
      since = status.step() + 1;
      begin = absl::Now();
    }
    made = status.step() + 1 - since;
    return since != 0 && made > steps;
  });
  return (absl::Now() - begin) / static_cast<int64_t>(made);
}

void End(e2e::Process& process) {
  process.Signal(SIGKILL);
  process.Wait(absl::InfiniteDuration());
}

struct Moment {
  int64_t fault_ns = 0;
  int64_t over_ns = 0;  // the job steps as it should, seen from outside
};

// One fault and its end.
Moment Disturb(const Job& job, const std::string& fault, int victim, uint64_t settle, e2e::HostedJob* hosted) {
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
  WaitUntilSettled(job, fault == "join" ? kWorkers : kWorkers - 1, std::min(settle, kStepsAfterFault));
  moment.over_ns = absl::GetCurrentTimeNanos();
  if (fault == "cut_worker") hosted->hosts().Rejoin(victim + 1);
  return moment;
}

// After it three workers are members again, or two of which the next one joins. Returns how long a step takes.
absl::Duration Restore(const Job& job, const std::string& fault, int victim, uint64_t settle) {
  if (fault == "join") {
    End(job.worker(victim));
    return WaitUntilSettled(job, kWorkers - 1, settle);
  }
  if (fault == "stop_worker") {
    job.worker(victim).Signal(SIGCONT);
  } else if (fault == "kill_worker" || fault == "term_worker") {
    End(job.worker(victim));
    job.start_worker(victim);
  }
  return WaitUntilSettled(job, kWorkers, settle);
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
constexpr char kLateShare[] = "late_share";  // of a step
constexpr char kStepsLost[] = "steps_lost";

// False when no worker lost its session and found another.
bool AddChief(const std::vector<SessionRecord>& records, const Moment& moment, Figures& figures) {
  double stood = 0;
  ChiefReturn slowest;
  for (const SessionRecord& record : records) {
    const auto back = ChiefReturnOf(record, moment.fault_ns, moment.over_ns);
    if (back.has_value() && back->detect_ms + back->return_ms > slowest.detect_ms + slowest.return_ms) slowest = *back;
    stood = std::max(stood, LongestStepMs(record, moment.fault_ns, moment.over_ns));
  }
  if (slowest.detect_ms + slowest.return_ms <= 0) return false;
  const double total = static_cast<double>(moment.over_ns - moment.fault_ns) * 1e-6;
  figures["detect"].push_back(slowest.detect_ms);
  figures["choose"].push_back(slowest.return_ms);
  figures["form"].push_back(total - slowest.detect_ms - slowest.return_ms);
  figures["total"].push_back(total);
  figures["stood"].push_back(stood);
  return true;
}

// False when not all survivors lived through it.
bool AddWorker(const std::vector<SessionRecord>& records, const Moment& moment, Figures& figures) {
  Recovery slowest;
  int survivors = 0;
  for (const SessionRecord& record : records) {
    const auto recovery = RecoveryOf(record, moment.fault_ns);
    if (!recovery.has_value() || moment.fault_ns + recovery->total_ms * 1e6 > moment.over_ns) continue;
    ++survivors;
    if (recovery->total_ms > slowest.total_ms) slowest = *recovery;
  }
  if (survivors != kWorkers - 1) return false;
  for (size_t i = 0; i < kPhaseNames.size(); ++i) figures[kPhaseNames[i]].push_back(slowest.phase_ms[i]);
  figures["total"].push_back(slowest.total_ms);
  figures["stood"].push_back(slowest.stood_ms);
  figures["late"].push_back(slowest.late_ms);
  figures[kLateShare].push_back(slowest.usual_ms > 0 ? slowest.late_ms / slowest.usual_ms : 0);
  figures[kStepsLost].push_back(static_cast<double>(slowest.steps_lost));
  return true;
}

void Print(const std::string& fault, int missed, const std::string& hitch, const std::vector<SessionRecord>& records,
           const Figures& figures) {
  std::vector<double> steps;
  for (const SessionRecord& record : records) {
    for (size_t i = 1; i < record.applied.size(); ++i) {
      if (!(record.applied[i].generation == record.applied[i - 1].generation)) continue;
      steps.push_back(static_cast<double>(record.applied[i].at_ns - record.applied[i - 1].at_ns) * 1e-6);
    }
  }
  const std::vector<double>& total = figures.at("total");
  std::printf("{\"bench\":\"recovery\",\"fault\":\"%s\",\"kills\":%d,\"missed\":%d,\"died\":%d,", fault.c_str(),
              static_cast<int>(total.size()), missed, hitch.empty() ? 0 : 1);
  std::printf("\"median_ms\":%.1f,\"p95_ms\":%.1f,\"best_ms\":%.1f,\"worst_ms\":%.1f,\"step_ms\":%.2f", Median(total),
              Percentile(total, 0.95), Percentile(total, 1e-9), Percentile(total, 1), Median(steps));
  for (const auto& [name, values] : figures) {
    const char* const unit = name == kLateShare || name == kStepsLost ? "" : "_ms";
    std::printf(",\"%s_p50%s\":%.2f,\"%s_p95%s\":%.2f", name.c_str(), unit, Median(values), name.c_str(), unit,
                Percentile(values, 0.95));
  }
  std::printf("}\n");
  std::fflush(stdout);
}

// Plays rounds into `moments`. Empty, or why it could not go on.
std::string PlayRounds(const Job& job, const std::string& fault, int rounds, const Arguments& arguments,
                       e2e::HostedJob* hosted, std::vector<Moment>& moments) {
  static double spread = 0;
  try {
    if (fault == "join" && moments.empty()) {
      WaitUntilSettled(job, kWorkers, arguments.settle);
      End(job.worker(0));
    }
    absl::Duration step = WaitUntilSettled(job, fault == "join" ? kWorkers - 1 : kWorkers, arguments.settle);
    for (int round = 0; round < rounds; ++round) {
      spread += kGoldenRatio;
      absl::SleepFor((spread - std::floor(spread)) * step);
      const int victim = fault == "join" ? 0 : static_cast<int>(moments.size()) % kWorkers;
      moments.push_back(Disturb(job, fault, victim, arguments.settle, hosted));
      step = Restore(job, fault, victim, arguments.settle);
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// False when the job did not step again once.
bool Measure(const Job& job, const std::string& fault, const Arguments& arguments, e2e::HostedJob* hosted) {
  std::vector<Moment> moments;
  std::vector<SessionRecord> records;
  std::string hitch;
  Figures figures;
  int measured = 0;
  for (int pass = 0; pass < kPasses && measured < arguments.rounds && hitch.empty(); ++pass) {
    hitch = PlayRounds(job, fault, arguments.rounds - measured, arguments, hosted, moments);
    records = ReadSessionRecords(job.directory + ".records");
    figures.clear();
    measured = 0;
    for (const Moment& moment : moments) {
      if (arguments.trace) Trace(records, moment);
      const bool judged =
          fault == "kill_chief" ? AddChief(records, moment, figures) : AddWorker(records, moment, figures);
      measured += judged ? 1 : 0;
    }
  }
  if (!hitch.empty()) std::fprintf(stderr, "recovery_bench: %s: %s\n", fault.c_str(), hitch.c_str());
  if (measured > 0) Print(fault, static_cast<int>(moments.size()) - measured, hitch, records, figures);
  return hitch.empty() && measured >= arguments.rounds;
}

// The job's own settings and those of the command line, with a short silence for faults that nothing but silence shows.
std::vector<std::string> OverridesFor(const std::string& fault, const Arguments& arguments) {
  std::vector<std::string> overrides;
  if (fault == "stop_worker" || fault == "cut_worker") overrides.emplace_back("cluster.heartbeat_timeout=2s");
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  return overrides;
}

bool MeasureLocal(const std::string& fault, const Arguments& arguments) {
  e2e::LocalJob local("recovery", arguments.job, OverridesFor(fault, arguments));
  const Job job = {
      .directory = local.directory(),
      .start_worker = [&](int i) { local.StartWorker(i); },
      .start_chief = [&] { local.StartChief(kWorkers); },
      .worker = [&](int i) -> e2e::Process& { return local.worker(i); },
      .chief = [&]() -> e2e::Process& { return local.chief(); },
      .wait_for = [&](const std::string& what, const auto& condition) { local.WaitForStatus(what, condition); }};
  job.start_chief();
  for (int i = 0; i < kWorkers; ++i) job.start_worker(i);
  return Measure(job, fault, arguments, nullptr);
}

bool MeasureHosted(const std::string& fault, const Arguments& arguments) {
  e2e::HostedJob hosted("recovery", arguments.job, OverridesFor(fault, arguments), kWorkers);
  const Job job = {
      .directory = hosted.directory(),
      .start_worker = [&](int i) { hosted.StartWorker(i + 1); },
      .start_chief = [&] { hosted.StartChief(); },
      .worker = [&](int i) -> e2e::Process& { return hosted.worker(i + 1); },
      .chief = [&]() -> e2e::Process& { return hosted.chief(); },
      .wait_for = [&](const std::string& what, const auto& condition) { hosted.WaitForStatus(what, condition); }};
  return Measure(job, fault, arguments, &hosted);
}

// False when one kind could not be measured as often as it was to be.
bool Run(const Arguments& arguments) {
  bool all = true;
  // The network of this process is made before any other thread is.
  const bool cuts = std::count(arguments.faults.begin(), arguments.faults.end(), "cut_worker") > 0;
  const bool hosts = cuts && e2e::Hosts::Allowed("cut_worker");
  for (const std::string& fault : arguments.faults) {
    if (fault == "cut_worker") {
      all = (!hosts || MeasureHosted(fault, arguments)) && all;
    } else {
      all = MeasureLocal(fault, arguments) && all;
    }
  }
  return all;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  try {
    return lockstep::bench::Run(lockstep::bench::Parse(argc, argv)) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recovery_bench: %s\n", error.what());
    return 1;
  }
}
