// simulation_main: runs many schedules, or one seed.
//
//   simulation_main --seeds-from 1 --count 2000            those seeds, the same in every run
//   simulation_main --fresh --seconds 20                   seeds that nobody ran before; the first one is printed
//   simulation_main --seed S --trace                       replays one with every message and decision
//
// --seeds-file runs the seeds of a file first. Exit 1 when any schedule failed; --failures-to keeps the failing seeds.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/seed_list.h"

namespace lockstep::simulation {
namespace {

struct Options {
  uint64_t first = 1;
  uint64_t count = 0;  // run so many
  double seconds = 0;  // or go on for so long
  uint64_t max_failures = 10;
  std::string seeds_file;
  std::string failures_to;
};

int Replay(uint64_t seed, bool trace) {
  const ScenarioResult result = RunScenario(seed, trace ? &std::cout : nullptr);
  std::cout << absl::StrFormat("seed %d: %d faults, %d worker lives, %d chief lives, %d steps applied, %s simulated\n",
                               seed, result.faults, result.worker_lives, result.chief_lives, result.steps_applied,
                               absl::FormatDuration(result.simulated));
  for (const std::string& violation : result.violations) std::cout << "  " << violation << "\n";
  return result.violations.empty() ? 0 : 1;
}

class Runs {
 public:
  explicit Runs(Options options) : options_(std::move(options)) {}

  // False when nothing more is to run.
  bool Run(uint64_t seed) {
    const ScenarioResult result = RunScenario(seed, nullptr);
    ++schedules_;
    faults_ += result.faults;
    steps_ += result.steps_applied;
    for (const auto& [what, count] : result.covered) covered_[what] += count;
    if (!result.violations.empty()) Failed(seed, result.violations[0]);
    return failures_ < options_.max_failures;
  }
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  int Conclude() const {
    for (const auto& [what, count] : covered_) std::cout << what << " " << count << "; ";
    std::cout << absl::StrFormat("\n%d schedules in %.1f s (%.0f per minute): %d faults, %d steps applied, %d failed\n",
                                 schedules_, elapsed(), 60 * schedules_ / elapsed(), faults_, steps_, failures_);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void Failed(uint64_t seed, const std::string& violation) {
    ++failures_;
    std::cout << "FAILED seed " << seed << ": " << violation << "\n  replay: " << ReplayCommand(seed) << std::endl;
    if (options_.failures_to.empty()) return;
    std::ofstream(options_.failures_to, std::ios::app) << seed << "  # " << violation << std::endl;
  }

  const Options options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  uint64_t schedules_ = 0, faults_ = 0, steps_ = 0, failures_ = 0;
  std::map<std::string, uint64_t> covered_;
};

int RunMany(const Options& options) {
  Runs runs(options);
  if (!options.seeds_file.empty()) {
    const absl::StatusOr<std::vector<uint64_t>> seeds = ReadSeeds(options.seeds_file);
    if (!seeds.ok()) {
      std::cerr << seeds.status().message() << "\n";
      return 64;
    }
    for (const uint64_t seed : *seeds) {
      if (!runs.Run(seed)) return runs.Conclude();
    }
  }
  std::cout << "seeds from " << options.first << std::endl;
  for (uint64_t i = 0; i < options.count || runs.elapsed() < options.seconds; ++i) {
    if (!runs.Run(options.first + i)) break;
  }
  return runs.Conclude();
}

uint64_t FreshSeed() {
  std::random_device device;
  // Room for a run that goes on for days.
  return (static_cast<uint64_t>(device()) << 24) + 1;
}

}  // namespace
}  // namespace lockstep::simulation

int main(int argc, char** argv) {
  CLI::App app("Seeded fault schedules against the two pure cores");
  lockstep::simulation::Options options;
  uint64_t seed = 1;
  bool trace = false, fresh = false;
  CLI::Option* one = app.add_option("--seed", seed, "run this seed alone");
  app.add_flag("--trace", trace, "print every message and decision of the one seed");
  CLI::Option* from = app.add_option("--seeds-from", options.first, "the first of consecutive seeds");
  app.add_flag("--fresh", fresh, "begin at a seed that chance draws")->excludes(from);
  app.add_option("--count", options.count, "run so many");
  app.add_option("--seconds", options.seconds, "go on for so long");
  app.add_option("--max-failures", options.max_failures, "stop after so many failing seeds");
  app.add_option("--seeds-file", options.seeds_file, "run the seeds of this file first");
  app.add_option("--failures-to", options.failures_to, "append failing seeds to this file");
  CLI11_PARSE(app, argc, argv);
  if (one->count() > 0) return lockstep::simulation::Replay(seed, trace);
  if (fresh) options.first = lockstep::simulation::FreshSeed();
  return lockstep::simulation::RunMany(options);
}
