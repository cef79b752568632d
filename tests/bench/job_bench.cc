// What a step of a job consists of, what a save costs it, and what a second worker brings: the job is run with one and
// with two workers in turns, as real processes. Prints one JSON object, medians over the rounds.
//
//   job_bench --job JOB [--rounds N] [--set key=value]…     the job must write checkpoints
//
// Wall time is that between applied steps in the record of a worker's core; the parts are the worker's own counters.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/session_record.h"
#include "tests/e2e/local_job.h"

namespace lockstep::bench {
namespace {

struct Arguments {
  std::string job;
  int rounds = 3;
  std::vector<std::string> overrides;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--job") == 0) arguments.job = argv[i + 1];
    if (std::strcmp(argv[i], "--rounds") == 0) arguments.rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--set") == 0) arguments.overrides.emplace_back(argv[i + 1]);
  }
  if (arguments.job.empty() || arguments.rounds < 1)
    throw std::runtime_error("--job JOB and --rounds N >= 1 are needed");
  return arguments;
}

// Of one run, per step of one worker.
using Figures = std::map<std::string, double>;

Figures Measure(const WorkerStats& stats, const SessionRecord& record) {
  const std::set<uint64_t> saved(record.snapshots.begin(), record.snapshots.end());
  std::vector<double> walls, after_save;
  double checkpoints = 0;
  for (size_t i = 1; i < record.applied.size(); ++i) {
    const double wall = static_cast<double>(record.applied[i].at_ns - record.applied[i - 1].at_ns) * 1e-9;
    walls.push_back(wall);
    if (!saved.contains(record.applied[i - 1].step)) continue;
    after_save.push_back(wall);
    ++checkpoints;
  }
  if (stats.steps() < 1 || walls.empty() || checkpoints < 1) throw std::runtime_error("the run was too short");
  const auto steps = static_cast<double>(stats.steps());
  // The counters cover the newest steps; when they cover all, the first has no wall time (nothing was applied before).
  const size_t timed = std::min(walls.size(), static_cast<size_t>(stats.steps()));
  double wall = 0;
  for (size_t i = walls.size() - timed; i < walls.size(); ++i) wall += walls[i] / static_cast<double>(timed);
  Figures figures;
  figures["wall"] = wall;
  figures["median_wall"] = Median(walls);
  figures["compute_share"] = stats.compute_seconds() / steps / wall;
  figures["all_reduce_share"] = stats.all_reduce_seconds() / steps / wall;
  figures["data_share"] = stats.data_seconds() / steps / wall;
  figures["outside_share"] =
      1 - (stats.compute_seconds() + stats.all_reduce_seconds() - stats.data_seconds()) / steps / wall;
  figures["copy_share"] = stats.checkpoint_seconds() / checkpoints / Median(walls);
  figures["save_share"] = Median(after_save) / Median(walls) - 1;
  figures["checkpoints"] = checkpoints;
  return figures;
}

// The mean over the workers. They step together, so any worker's wall time serves for any other's counters.
Figures RunJob(const Arguments& arguments, int workers) {
  e2e::LocalJob job("job", arguments.job, arguments.overrides);
  job.RunUndisturbed(workers);
  const std::vector<SessionRecord> records = ReadSessionRecords(job.directory() + ".records");
  const WorkerStatsFile stats = job.Stats();
  if (static_cast<int>(records.size()) != workers || stats.workers_size() != workers) {
    throw std::runtime_error("not every worker stepped");
  }
  Figures mean;
  for (int i = 0; i < workers; ++i) {
    for (const auto& [name, value] : Measure(stats.workers(i), records[i])) mean[name] += value / workers;
  }
  return mean;
}

void Run(const Arguments& arguments) {
  std::map<std::string, std::vector<double>> all;
  for (int round = 0; round < arguments.rounds; ++round) {
    std::map<int, Figures> runs;
    for (const int workers : {1, 2}) {
      runs[workers] = RunJob(arguments, workers);
      for (const auto& [name, value] : runs[workers]) all[absl::StrCat(name, "_", workers)].push_back(value);
    }
    all["speedup"].push_back(runs[1]["median_wall"] / runs[2]["median_wall"]);
  }
  std::printf("{\"bench\":\"job\",\"rounds\":%d", arguments.rounds);
  for (const auto& [name, values] : all) std::printf(",\"%s\":%.6f", name.c_str(), Median(values));
  std::printf("}\n");
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  try {
    lockstep::bench::Run(lockstep::bench::Parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "job_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
