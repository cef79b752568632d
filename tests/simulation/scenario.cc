#include "tests/simulation/scenario.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/job_store/make_real_disk.h"
#include "tests/simulation/progress_oracle.h"
#include "tests/simulation/swarm.h"

namespace lockstep::simulation {
namespace {

// A schedule that goes on after this many events runs in circles.
constexpr uint64_t kMaxEvents = 5'000'000;

// Runs one schedule to its end.
class Schedule {
 public:
  explicit Schedule(const ScenarioOptions& options)
      : options_(options),
        classic_(options.profile == Profile::kClassic),
        random_(Mix(options.seed ^ 0x5eedull)),
        disk_random_(Mix(options.seed ^ 0xd15cull)),
        swarm_(Drawn()),
        cluster_(options.salt == 0 ? options.seed : Mix(options.seed ^ Mix(options.salt)), swarm_.settings,
                 options.trace),
        progress_(&cluster_),
        faults_(&cluster_, [this](ProcessId process) { progress_.Disturbed(process); }) {}

  ScenarioResult Run() {
    World& world = *cluster_.world;
    cluster_.Start();
    if (classic_) {
      StartClassicFaults();
    } else {
      StartSwarm();
    }
    world.AfterOutside(swarm_.fault_phase, [this] { Heal(); });
    while (!cluster_.done() && !cluster_.oracle->violated() && cluster_.failure().empty()) {
      ++result_.events;
      if (!world.RunOne() || result_.events > kMaxEvents || world.now() > deadline_) break;
    }
    Conclude();
    return std::move(result_);
  }

 private:
  Swarm Drawn() {
    Swarm swarm;
    if (classic_) {
      swarm = Classic();
    } else {
      swarm = options_.profile == Profile::kWide ? DrawWideSwarm(options_.seed) : DrawSwarm(options_.seed);
    }
    if (RunsJobStore()) {
      swarm.settings.make_disk = [seed = options_.seed](Cluster* cluster) { return MakeRealDisk(cluster, seed); };
    }
    return swarm;
  }

  bool RunsJobStore() const {
    if (options_.store != StoreKind::kDrawn) return options_.store == StoreKind::kReal;
    return options_.profile == Profile::kWide && Mix(options_.seed ^ 0x570e1ull) % 16 == 0;
  }

  // ---- faults that were drawn before
  void StartSwarm() {
    fault_free_ = swarm_.faults.empty();
    progress_.Start();
    for (size_t i = 0; i < swarm_.faults.size(); ++i) {
      if (options_.only.has_value() && options_.only->count(i) == 0) continue;
      cluster_.world->AfterOutside(swarm_.faults[i].at, [this, i] {
        if (faults_.healed()) return;
        ++result_.faults;
        Random random(swarm_.faults[i].seed);
        progress_.Struck(swarm_.faults[i].kind);
        if (cluster_.world->tracing()) {
          cluster_.world->Trace("fault", absl::StrCat("number ", i, ": ", NameOf(swarm_.faults[i].kind)));
        }
        faults_.Inject(swarm_.faults[i].kind, random);
      });
    }
  }

  // ---- faults that are drawn while it runs
  Swarm Classic() {
    Swarm swarm;
    swarm.settings = DrawSettings(random_);
    return swarm;
  }

  void StartClassicFaults() {
    World& world = *cluster_.world;
    // The instant that matters most comes too seldom by chance: a chief that sleeps right before its rename.
    cluster_.on_commit = [this](ProcessId chief) {
      if (!faults_.healed() && !fault_free_ && random_.Chance(20)) faults_.PauseChief(chief, true, random_);
    };
    swarm_.fault_phase = random_.Between(absl::Seconds(1), absl::Seconds(25));
    rate_ = random_.Chance(500) ? random_.Between(absl::Milliseconds(20), absl::Milliseconds(400))
                                : random_.Between(absl::Milliseconds(400), absl::Seconds(4));
    fault_free_ = random_.Chance(80);
    if (!fault_free_) world.AfterOutside(random_.Between(absl::ZeroDuration(), rate_), [this] { NextFault(); });
    // Drawn from a stream of their own: what hits the disk and what hits processes are independent.
    if (!fault_free_ && disk_random_.Chance(300)) {
      world.AfterOutside(disk_random_.Between(absl::ZeroDuration(), swarm_.fault_phase), [this] { FillDisk(); });
    }
  }

  void NextFault() {
    if (faults_.healed()) return;
    ++result_.faults;
    faults_.Inject(ClassicKind(static_cast<int>(random_.Below(100))), random_);
    const absl::Duration gap = random_.Chance(150) ? absl::Milliseconds(random_.Between(0, 5))
                                                   : random_.Between(absl::ZeroDuration(), 2 * rate_);
    cluster_.world->AfterOutside(gap, [this] { NextFault(); });
  }

  static FaultKind ClassicKind(int percent) {
    if (percent < 22) return FaultKind::kKillWorker;
    if (percent < 34) return FaultKind::kTerminateWorker;
    if (percent < 46) return FaultKind::kPauseWorker;
    if (percent < 58) return FaultKind::kKillChief;
    if (percent < 64) return FaultKind::kPauseChief;
    if (percent < 78) return FaultKind::kBreakConnection;
    if (percent < 88) return FaultKind::kBreakGroup;
    if (percent < 95) return FaultKind::kBlockDirection;
    if (percent < 97) return FaultKind::kStopJob;
    return FaultKind::kKillAll;
  }

  void FillDisk() {
    if (faults_.healed()) return;
    ++result_.faults;
    cluster_.disk->refuses = true;
    if (cluster_.world->tracing()) cluster_.world->Trace("fault", "the disk is full");
    const absl::Duration time = disk_random_.Between(
        absl::Milliseconds(5), disk_random_.Chance(500) ? absl::Milliseconds(200) : absl::Seconds(20));
    cluster_.world->AfterOutside(time, [this] { EmptyDisk(); });
  }

  void EmptyDisk() {
    if (faults_.healed()) return;
    cluster_.disk->refuses = false;
    if (cluster_.world->tracing()) cluster_.world->Trace("fault", "the disk has room again");
    cluster_.world->AfterOutside(disk_random_.Between(absl::ZeroDuration(), absl::Seconds(6)), [this] { FillDisk(); });
  }

  // ---- the end of the faults
  void Heal() {
    World& world = *cluster_.world;
    if (world.tracing()) world.Trace("world", "heals");
    faults_.Heal();
    // A core of hosts lives on, large enough to train; the rest is dead.
    std::vector<int> slots;
    for (int slot = 0; slot < cluster_.settings.workers; ++slot) {
      if (cluster_.restartable(slot)) slots.push_back(slot);
    }
    for (size_t i = slots.size(); i > 1; --i) std::swap(slots[i - 1], slots[random_.Below(i)]);
    const auto able = static_cast<int64_t>(slots.size());
    const bool all = fault_free_ || cluster_.settings.flips_alone;
    const int64_t core = all ? able : random_.Between(cluster_.settings.policy.min_workers, able);
    for (size_t i = static_cast<size_t>(core); i < slots.size(); ++i) {
      cluster_.NeverRestart(slots[i]);
      cluster_.KillWorker(slots[i], 9);
    }
    faults_.WakeAll(random_);
    // What is left is computed, saved and told; each begins within the limit of progress.
    const absl::Duration begins =
        classic_ ? absl::Seconds(90) : 3 * ProgressOracle::Most(cluster_.settings, swarm_.kinds);
    deadline_ = world.now() + begins +
                cluster_.settings.job.steps * cluster_.settings.compute_scale * absl::Milliseconds(60) +
                cluster_.settings.policy.training.chief_timeout;
  }

  // Nobody can be late by the network alone.
  bool IsCalm() const {
    return cluster_.settings.delays.high <= absl::Milliseconds(2) && cluster_.settings.delays.rare_per_mille <= 10 &&
           cluster_.settings.policy.ack_limit >= absl::Seconds(1);
  }

  void Conclude() {
    Oracle& oracle = *cluster_.oracle;
    if (!cluster_.failure().empty()) oracle.Violation(cluster_.failure());
    const int64_t last = oracle.reference().end_step();
    if (!oracle.violated() && !cluster_.done()) {
      oracle.Violation(absl::StrCat("not finished ", faults_.healed() ? "within the bound after the world healed" : "",
                                    ": applied up to step ", oracle.highest_applied(), ", committed ",
                                    oracle.highest_committed(), " of ", last));
    }
    // A bucket loses requests in such a schedule too.
    if (fault_free_ && IsCalm() && cluster_.disk->refused == 0 && cluster_.covered["Verdict"] > 0) {
      oracle.Violation("a generation was broken although nothing failed");
    }
    if (!oracle.violated()) cluster_.CheckEnd();
    result_.violations = oracle.violations();
    result_.steps_applied = static_cast<uint64_t>(oracle.applied());
    result_.worker_lives = cluster_.workers.size();
    result_.chief_lives = cluster_.chiefs.size();
    result_.commits = static_cast<uint64_t>(oracle.commits());
    for (const auto& [what, count] : cluster_.covered) result_.covered[std::string(what)] = count;
    result_.simulated = cluster_.world->elapsed();
    result_.coverage = cluster_.coverage;
    if (!classic_) result_.wait_share = progress_.largest_share();
    result_.longest_wait = progress_.longest();
    for (const PlannedFault& fault : swarm_.faults) {
      result_.planned.push_back(absl::StrCat(absl::FormatDuration(fault.at), " ", NameOf(fault.kind)));
    }
  }

  const ScenarioOptions options_;
  const bool classic_;
  Random random_;
  Random disk_random_;
  Swarm swarm_;
  Cluster cluster_;
  ProgressOracle progress_;
  Faults faults_;
  ScenarioResult result_;
  absl::Duration rate_;
  bool fault_free_ = false;
  absl::Time deadline_ = absl::InfiniteFuture();
};

}  // namespace

const char* NameOf(Profile profile) {
  switch (profile) {
    case Profile::kClassic:
      return "classic";
    case Profile::kSwarm:
      return "swarm";
    case Profile::kWide:
      return "wide";
  }
  return "";
}

const char* NameOf(StoreKind kind) {
  switch (kind) {
    case StoreKind::kDrawn:
      return "drawn";
    case StoreKind::kModel:
      return "model";
    case StoreKind::kReal:
      return "real";
  }
  return "";
}

ScenarioResult RunScenario(const ScenarioOptions& options) { return Schedule(options).Run(); }

std::string ReplayCommand(const ScenarioOptions& options) {
  std::string command = absl::StrCat("bazel-bin/tests/simulation/simulation_main --seed ", options.seed, " --trace");
  if (options.profile != Profile::kWide) absl::StrAppend(&command, " --", NameOf(options.profile));
  if (options.store != StoreKind::kDrawn) absl::StrAppend(&command, " --store ", NameOf(options.store));
  if (options.only.has_value()) absl::StrAppend(&command, " --only '", absl::StrJoin(*options.only, ","), "'");
  if (options.salt != 0) absl::StrAppend(&command, " --salt ", options.salt);
  return command;
}

}  // namespace lockstep::simulation
