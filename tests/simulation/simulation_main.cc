// simulation_main: runs many schedules, or one seed.
//
//   simulation_main --seeds-from 1 --count 2000            those seeds, the same in every run
//   simulation_main --fresh --seconds 20                   seeds that nobody ran before; the first one is printed
//   simulation_main --seed S --trace                       replays one with every message and decision
//   simulation_main --seed S --shrink                      the smallest schedule of it that still fails
//   simulation_main --explore --kills 1 --late 1           all schedules of a small scope
//
// --seeds-file runs the seeds of a file first. Exit 1 when any schedule failed; --failures-to keeps the failing seeds.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/sync/mutex.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/explore.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/seed_list.h"
#include "tests/simulation/shrink.h"

namespace lockstep::simulation {
namespace {

struct Options {
  uint64_t first = 1;
  uint64_t count = 0;  // run so many
  double seconds = 0;  // or go on for so long
  uint64_t max_failures = 10;
  uint64_t jobs = std::max(1u, std::thread::hardware_concurrency());
  std::string seeds_file;
  std::string failures_to;
};

std::string Summary(const ScenarioOptions& options, const ScenarioResult& result) {
  std::string text = absl::StrFormat(
      "seed %d: %d faults, %d worker lives, %d chief lives, %d steps applied, %s simulated, longest wait for a step "
      "%s\n",
      options.seed, result.faults, result.worker_lives, result.chief_lives, result.steps_applied,
      absl::FormatDuration(result.simulated), absl::FormatDuration(result.longest_wait));
  for (const std::string& violation : result.violations) absl::StrAppend(&text, "  ", violation, "\n");
  return text;
}

int ReplaySeed(ScenarioOptions options, bool trace) {
  if (trace) options.trace = &std::cout;
  const ScenarioResult result = RunScenario(options);
  std::cout << Summary(options, result);
  return result.violations.empty() ? 0 : 1;
}

int ShrinkAndSay(const ScenarioOptions& options) {
  const Shrunk shrunk = Shrink(options);
  std::cout << Summary(shrunk.options, shrunk.result);
  if (shrunk.result.violations.empty()) return 0;
  if (shrunk.options.only.has_value()) {
    std::cout << absl::StrFormat("%d of %d faults are left after %d runs:\n", shrunk.options.only->size(),
                                 shrunk.result.planned.size(), shrunk.runs);
    for (const size_t fault : *shrunk.options.only) {
      std::cout << "  " << fault << "  " << shrunk.result.planned[fault] << "\n";
    }
  }
  std::cout << "replay: " << ReplayCommand(shrunk.options) << "\n";
  return 1;
}

// Runs schedules on several threads and adds up what they met.
class Runs {
 public:
  explicit Runs(Options options, ScenarioOptions schedule, std::vector<ScenarioOptions> first)
      : options_(std::move(options)), schedule_(std::move(schedule)), first_(std::move(first)) {}

  void Run() {
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i < options_.jobs; ++i) threads.emplace_back([this] { RunSome(); });
    RunSome();
    for (std::thread& thread : threads) thread.join();
  }
  int Conclude() const {
    for (const auto& [what, count] : covered_) std::cout << what << " " << count << "; ";
    std::cout << "\n" << coverage_.Text();
    std::cout << absl::StrFormat("longest wait for a step: %s, %.0f%% of what is allowed\n", longest_wait_,
                                 100 * wait_share_);
    std::cout << absl::StrFormat("%d schedules in %.1f s (%.0f per minute): %d faults, %d steps applied, %d failed\n",
                                 schedules_, elapsed(), 60 * schedules_ / elapsed(), faults_, steps_, failures_);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  // What one thread has met.
  struct Met {
    uint64_t schedules = 0, faults = 0, steps = 0;
    std::map<std::string, uint64_t> covered;
    Coverage coverage;
  };

  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  // The next schedule; nullopt when nothing more is to run.
  std::optional<ScenarioOptions> Next() {
    MutexLock lock(&mutex_);
    if (failures_ >= options_.max_failures) return std::nullopt;
    if (next_ < first_.size()) return first_[next_++];
    const uint64_t i = next_ - first_.size();
    if (i >= options_.count && elapsed() >= options_.seconds) return std::nullopt;
    ++next_;
    ScenarioOptions schedule = schedule_;
    schedule.seed = options_.first + i;
    return schedule;
  }

  void RunSome() {
    Met met;
    while (const std::optional<ScenarioOptions> schedule = Next()) {
      const ScenarioResult result = RunScenario(*schedule);
      ++met.schedules;
      met.faults += result.faults;
      met.steps += result.steps_applied;
      for (const auto& [what, count] : result.covered) met.covered[what] += count;
      met.coverage.Add(result.coverage);
      if (result.violations.empty() && result.wait_share <= wait_share_.load()) continue;
      MutexLock lock(&mutex_);
      if (result.wait_share > wait_share_.load()) {
        wait_share_ = result.wait_share;
        longest_wait_ = absl::StrCat(absl::FormatDuration(result.longest_wait), " in seed ", schedule->seed);
      }
      if (!result.violations.empty()) Failed(*schedule, result.violations[0]);
    }
    MutexLock lock(&mutex_);
    schedules_ += met.schedules;
    faults_ += met.faults;
    steps_ += met.steps;
    for (const auto& [what, count] : met.covered) covered_[what] += count;
    coverage_.Add(met.coverage);
  }

  void Failed(const ScenarioOptions& schedule, const std::string& violation) {
    ++failures_;
    std::cout << "FAILED seed " << schedule.seed << ": " << violation << "\n  replay: " << ReplayCommand(schedule)
              << std::endl;
    if (options_.failures_to.empty()) return;
    std::ofstream(options_.failures_to, std::ios::app)
        << NameOf(schedule.profile) << " " << schedule.seed << (schedule.store == StoreKind::kReal ? " real" : "")
        << "  # " << violation << std::endl;
  }

  const Options options_;
  const ScenarioOptions schedule_;
  const std::vector<ScenarioOptions> first_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  Mutex mutex_;  // of what follows
  uint64_t next_ = 0;
  uint64_t schedules_ = 0, faults_ = 0, steps_ = 0, failures_ = 0;
  std::map<std::string, uint64_t> covered_;
  Coverage coverage_;
  std::atomic<double> wait_share_ = 0;
  std::string longest_wait_ = "none";
};

int RunMany(const Options& options, const ScenarioOptions& schedule) {
  std::vector<ScenarioOptions> first;
  if (!options.seeds_file.empty()) {
    auto schedules = ReadSeeds(options.seeds_file);
    if (!schedules.ok()) {
      std::cerr << schedules.status().message() << "\n";
      return 64;
    }
    first = *std::move(schedules);
  }
  std::cout << "seeds from " << options.first << std::endl;
  Runs runs(options, schedule, std::move(first));
  runs.Run();
  return runs.Conclude();
}

int ExploreAndSay(const Scope& scope) {
  const Explored explored = Explore(scope);
  for (const std::string& failure : explored.failures) std::cout << "FAILED " << failure << "\n";
  std::cout << absl::StrFormat(
      "%d distinct schedules in %d runs; %s\n", explored.distinct, explored.runs,
      explored.exhausted ? "nothing of the scope was left out" : "the scope was not exhausted");
  return explored.failures.empty() ? 0 : 1;
}

uint64_t FreshSeed() {
  std::random_device device;
  // Room for a run that goes on for days.
  return (static_cast<uint64_t>(device()) << 24) + 1;
}

}  // namespace
}  // namespace lockstep::simulation

int main(int argc, char** argv) {
  using namespace lockstep::simulation;  // NOLINT: main alone
  CLI::App app("Seeded fault schedules against the two pure cores");
  Options options;
  ScenarioOptions schedule;
  Scope scope;
  bool trace = false, fresh = false, classic = false, swarm = false, shrink = false, explore = false;
  std::vector<size_t> only;
  CLI::Option* one = app.add_option("--seed", schedule.seed, "run this seed alone");
  app.add_flag("--trace", trace, "print every message and decision of the one seed");
  app.add_flag("--shrink", shrink, "leave out what the one seed does not need to fail, and print what is left");
  app.add_option("--only", only, "of the faults of the one seed, by number")->delimiter(',')->expected(0, 1 << 20);
  app.add_option("--salt", schedule.salt, "other delays for the same faults");
  app.add_flag("--swarm", swarm, "without the kinds of faults that wide swarms add");
  app.add_flag("--classic", classic, "fewer kinds of faults, all of them in every schedule");
  const std::map<std::string, StoreKind> stores = {{"model", StoreKind::kModel}, {"real", StoreKind::kReal}};
  app.add_option("--store", schedule.store, "the model of a disk or the chief's own JobStore, for every seed")
      ->transform(CLI::CheckedTransformer(stores));
  CLI::Option* from = app.add_option("--seeds-from", options.first, "the first of consecutive seeds");
  app.add_flag("--fresh", fresh, "begin at a seed that chance draws")->excludes(from);
  app.add_option("--count", options.count, "run so many");
  app.add_option("--seconds", options.seconds, "go on for so long");
  app.add_option("--jobs", options.jobs, "threads; as many as there are cores without it")->check(CLI::PositiveNumber);
  app.add_option("--max-failures", options.max_failures, "stop after so many failing seeds");
  app.add_option("--seeds-file", options.seeds_file, "run the seeds of this file first");
  app.add_option("--failures-to", options.failures_to, "append failing seeds to this file");
  app.add_flag("--explore", explore, "all schedules of a small scope (explore.h)");
  app.add_option("--kills", scope.kills, "at most so many processes are killed in the small scope");
  app.add_option("--late", scope.late, "at most so many of its delays are long");
  app.add_option("--stride", scope.stride, "try only every so many of its choices");
  CLI11_PARSE(app, argc, argv);
  if (explore) return ExploreAndSay(scope);
  if (swarm) schedule.profile = Profile::kSwarm;
  if (classic) schedule.profile = Profile::kClassic;
  if (app.count("--only") > 0) schedule.only.emplace(only.begin(), only.end());
  if (one->count() > 0) return shrink ? ShrinkAndSay(schedule) : ReplaySeed(schedule, trace);
  if (fresh) options.first = FreshSeed();
  return RunMany(options, schedule);
}
