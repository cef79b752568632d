// simulation_main: runs schedules from consecutive seeds until the time is over and enough have run, or one seed.
//
//   simulation_main --seconds 60 --min-schedules 2000      prints the count; exit 1 and the seeds when any fails
//   simulation_main --seed S --trace                       replays one with every message and decision
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "tests/simulation/scenario.h"

namespace lockstep::simulation {
namespace {

int Replay(uint64_t seed, bool trace) {
  const ScenarioResult result = RunScenario(seed, trace ? &std::cout : nullptr);
  std::cout << absl::StrFormat("seed %d: %d faults, %d worker lives, %d chief lives, %d steps applied, %s simulated\n",
                               seed, result.faults, result.worker_lives, result.chief_lives, result.steps_applied,
                               absl::FormatDuration(result.simulated));
  for (const std::string& violation : result.violations) std::cout << "  " << violation << "\n";
  return result.violations.empty() ? 0 : 1;
}

int RunMany(uint64_t first_seed, double seconds, uint64_t min_schedules, uint64_t max_failures) {
  const auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  uint64_t schedules = 0, faults = 0, steps = 0, failures = 0;
  std::map<std::string, uint64_t> covered;
  for (uint64_t seed = first_seed; elapsed() < seconds || schedules < min_schedules; ++seed) {
    const ScenarioResult result = RunScenario(seed, nullptr);
    ++schedules;
    faults += result.faults;
    steps += result.steps_applied;
    for (const auto& [what, count] : result.covered) covered[what] += count;
    if (result.violations.empty()) continue;
    ++failures;
    std::cout << "FAILED seed " << seed << ": " << result.violations[0] << "\n  replay: " << ReplayCommand(seed)
              << std::endl;
    if (failures >= max_failures) break;
  }
  for (const auto& [what, count] : covered) std::cout << what << " " << count << "; ";
  std::cout << absl::StrFormat("\n%d schedules in %.1f s (%.0f per minute): %d faults, %d steps applied, %d failed\n",
                               schedules, elapsed(), 60 * schedules / elapsed(), faults, steps, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::simulation

int main(int argc, char** argv) {
  CLI::App app("Seeded fault schedules against the two pure cores");
  double seconds = 10;
  uint64_t min_schedules = 0;
  uint64_t max_failures = 10;
  uint64_t seed = 1;
  bool trace = false;
  app.add_option("--seconds", seconds, "how long to go on");
  app.add_option("--min-schedules", min_schedules, "run at least so many, whatever the time");
  app.add_option("--max-failures", max_failures, "stop after so many failing seeds");
  CLI::Option* one = app.add_option("--seed", seed, "run this seed alone");
  uint64_t first = 1;
  app.add_option("--first-seed", first, "the first of many");
  app.add_flag("--trace", trace, "print every message and decision of the one seed");
  CLI11_PARSE(app, argc, argv);
  if (one->count() > 0) return lockstep::simulation::Replay(seed, trace);
  return lockstep::simulation::RunMany(first, seconds, min_schedules, max_failures);
}
