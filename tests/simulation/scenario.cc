#include "tests/simulation/scenario.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"

namespace lockstep::simulation {
namespace {

// A schedule that goes on after this many events runs in circles.
constexpr uint64_t kMaxEvents = 3'000'000;

ClusterSettings Settings(Random& random) {
  ClusterSettings settings;
  settings.workers = static_cast<int>(random.Between(1, 4));
  settings.keep_checkpoints = static_cast<size_t>(random.Between(1, 3));
  TinyJob& job = settings.job;
  job.logical_shards = static_cast<int>(random.Between(1, 4));
  job.global_batch = 2 * job.logical_shards;
  job.samples = job.global_batch * random.Between(2, 6) + (random.Chance(500) ? random.Between(0, 3) : 0);
  job.steps = random.Chance(300) ? random.Between(20, 100) : random.Between(100, 1000);
  job.seed = random.Next();

  chief::JobPolicy& policy = settings.policy;
  policy.job = "job";
  policy.lineage = "lineage";
  policy.metagraph = "metagraph";
  policy.min_workers = static_cast<uint32_t>(random.Between(1, std::min(settings.workers, job.logical_shards)));
  policy.max_workers = static_cast<uint32_t>(settings.workers);
  policy.expected_workers = random.Chance(500) ? static_cast<uint32_t>(settings.workers) : policy.min_workers;
  policy.last_call = random.Chance(500) ? absl::Seconds(2) : absl::Seconds(30);
  TrainingPolicy& training = policy.training;
  training.end_step = static_cast<uint64_t>(job.steps);
  training.snapshot_every_steps = static_cast<uint64_t>(random.Between(3, 30));
  training.audit_every_steps = random.Chance(500) ? 16 : static_cast<uint64_t>(random.Between(0, 7));
  training.eval_slices = random.Chance(500) ? static_cast<uint64_t>(random.Between(1, 4)) : 0;
  training.eval_every_steps = random.Chance(500) ? static_cast<uint64_t>(random.Between(5, 40)) : 0;
  if (training.eval_slices > 0 && training.eval_every_steps > 0) {
    training.evaluation.id = 1;
    training.evaluation.keep_best = random.Chance(500);
    training.evaluation.patience = random.Chance(400) ? static_cast<uint64_t>(random.Between(2, 12)) : 0;
  }
  training.samples_text = random.Chance(200);
  training.logical_shards = static_cast<uint32_t>(job.logical_shards);
  policy.lineage_per_generation = training.digest_in_acks = random.Chance(200);
  training.chief_timeout = random.Chance(500) ? absl::Seconds(600) : absl::Seconds(random.Between(10, 60));
  return settings;
}

// The faults of one schedule, and the world that heals afterwards.
class Schedule {
 public:
  Schedule(uint64_t seed, std::ostream* trace)
      : random_(Mix(seed ^ 0x5eedull)), disk_random_(Mix(seed ^ 0xd15cull)), cluster_(seed, Settings(random_), trace) {}

  ScenarioResult Run() {
    World& world = *cluster_.world;
    cluster_.Start();
    // The instant that matters most comes too seldom by chance: a chief that sleeps right before its rename.
    cluster_.on_commit = [this](ProcessId chief) {
      if (!healed_ && !fault_free_ && random_.Chance(20)) PauseChief(chief, true);
    };
    const absl::Duration fault_phase = random_.Between(absl::Seconds(1), absl::Seconds(25));
    rate_ = random_.Chance(500) ? random_.Between(absl::Milliseconds(20), absl::Milliseconds(400))
                                : random_.Between(absl::Milliseconds(400), absl::Seconds(4));
    fault_free_ = random_.Chance(80);
    if (!fault_free_) world.AfterOutside(random_.Between(absl::ZeroDuration(), rate_), [this] { NextFault(); });
    // Drawn from a stream of their own: what hits the disk and what hits processes are independent.
    if (!fault_free_ && disk_random_.Chance(300)) {
      world.AfterOutside(disk_random_.Between(absl::ZeroDuration(), fault_phase), [this] { FillDisk(); });
    }
    world.AfterOutside(fault_phase, [this] { Heal(); });
    while (!cluster_.done() && !cluster_.oracle->violated() && cluster_.failure().empty()) {
      ++result_.events;
      if (!world.RunOne() || result_.events > kMaxEvents || world.now() > deadline_) break;
    }
    Conclude();
    return std::move(result_);
  }

 private:
  int RandomSlot() { return static_cast<int>(random_.Below(cluster_.settings.workers)); }

  void NextFault() {
    if (healed_) return;
    ++result_.faults;
    Fault();
    const absl::Duration gap = random_.Chance(150) ? absl::Milliseconds(random_.Between(0, 5))
                                                   : random_.Between(absl::ZeroDuration(), 2 * rate_);
    cluster_.world->AfterOutside(gap, [this] { NextFault(); });
  }

  void Fault() {
    const int kind = static_cast<int>(random_.Below(100));
    if (kind < 22) return cluster_.KillWorker(RandomSlot(), 9);
    if (kind < 34) return Terminate();
    if (kind < 46) return PauseWorker();
    if (kind < 58) return cluster_.KillChief(random_.Chance(200));
    if (kind < 64) return PauseChief(cluster_.chief()->process(), random_.Chance(500));
    if (kind < 78) return BreakConnection();
    if (kind < 88) return BreakGroup();
    if (kind < 95) return BlockDirection();
    if (kind < 97) return StopJob();
    for (int slot = 0; slot < cluster_.settings.workers; ++slot) cluster_.KillWorker(slot, 9);
    if (random_.Chance(500)) cluster_.KillChief(random_.Chance(300));
  }

  void StopJob() {
    SimChief* chief = cluster_.chief();
    if (!cluster_.world->alive(chief->process()) || !chief->listening()) return;
    cluster_.world->After(chief->process(), absl::ZeroDuration(), [chief] { chief->AskStop(); });
  }

  void Terminate() {
    const absl::Duration grace = random_.Chance(300) ? random_.Between(absl::Milliseconds(50), absl::Seconds(1))
                                                     : random_.Between(absl::Seconds(1), absl::Seconds(30));
    if (random_.Chance(150)) {
      for (int slot = 0; slot < cluster_.settings.workers; ++slot) cluster_.TerminateWorker(slot, grace);
    } else {
      cluster_.TerminateWorker(RandomSlot(), grace);
    }
  }

  void Pause(ProcessId process, absl::Duration time) {
    World& world = *cluster_.world;
    if (!world.alive(process) || world.paused(process)) return;
    if (world.tracing())
      world.Trace("fault", absl::StrCat("process ", process, " stops for ", absl::FormatDuration(time)));
    world.Pause(process);
    paused_.push_back(process);
    world.AfterOutside(time, [this, process] { Wake(process); });
  }

  void Wake(ProcessId process) {
    const auto found = std::find(paused_.begin(), paused_.end(), process);
    if (found == paused_.end()) return;
    paused_.erase(found);
    cluster_.world->Resume(process);
  }

  void PauseWorker() {
    SimWorker* worker = cluster_.worker(RandomSlot());
    if (worker == nullptr) return;
    Pause(worker->process(),
          random_.Between(absl::Milliseconds(20), random_.Chance(300) ? absl::Seconds(12) : absl::Seconds(2)));
  }

  void PauseChief(ProcessId chief, bool replace) {
    if (!cluster_.world->alive(chief)) return;
    Pause(chief, random_.Between(absl::Milliseconds(50), absl::Seconds(10)));
    // Somebody takes the silence for death, and now there are two.
    if (!replace) return;
    cluster_.world->AfterOutside(random_.Between(absl::Milliseconds(10), absl::Seconds(2)),
                                 [this] { cluster_.StartChief(++chief_host_); });
  }

  void BreakConnection() {
    const std::vector<ConnectionId> live = cluster_.network->Live();
    if (live.empty()) return;
    const ConnectionId id = live[random_.Below(live.size())];
    if (cluster_.world->tracing()) cluster_.world->Trace("fault", absl::StrCat("connection ", id, " breaks"));
    cluster_.network->Break(id);
  }

  void BreakGroup() {
    const std::vector<GroupKey> live = cluster_.fabric->Live();
    if (live.empty()) return;
    const GroupKey key = live[random_.Below(live.size())];
    if (cluster_.world->tracing()) {
      cluster_.world->Trace("fault", absl::StrCat("the group of ", key.term, ".", key.counter, " breaks"));
    }
    cluster_.fabric->Break(key);
  }

  void BlockDirection() {
    std::vector<HostId> hosts = {cluster_.world->host(cluster_.chief()->process())};
    for (int slot = 0; slot < cluster_.settings.workers; ++slot) hosts.push_back(slot);
    const HostId from = hosts[random_.Below(hosts.size())];
    const HostId to = hosts[random_.Below(hosts.size())];
    if (from == to || cluster_.network->blocked(from, to)) return;
    if (cluster_.world->tracing()) cluster_.world->Trace("fault", absl::StrCat("nothing gets from ", from, " to ", to));
    cluster_.network->Block(from, to);
    blocked_.push_back({from, to});
    cluster_.world->AfterOutside(random_.Between(absl::Milliseconds(50), absl::Seconds(9)),
                                 [this, from, to] { Open(from, to); });
  }

  void FillDisk() {
    if (healed_) return;
    ++result_.faults;
    cluster_.disk->refuses = true;
    if (cluster_.world->tracing()) cluster_.world->Trace("fault", "the disk is full");
    const absl::Duration time = disk_random_.Between(
        absl::Milliseconds(5), disk_random_.Chance(500) ? absl::Milliseconds(200) : absl::Seconds(20));
    cluster_.world->AfterOutside(time, [this] { EmptyDisk(); });
  }

  void EmptyDisk() {
    if (healed_) return;
    cluster_.disk->refuses = false;
    if (cluster_.world->tracing()) cluster_.world->Trace("fault", "the disk has room again");
    cluster_.world->AfterOutside(disk_random_.Between(absl::ZeroDuration(), absl::Seconds(6)), [this] { FillDisk(); });
  }

  void Open(HostId from, HostId to) {
    const auto found = std::find(blocked_.begin(), blocked_.end(), std::pair(from, to));
    if (found == blocked_.end()) return;
    blocked_.erase(found);
    cluster_.network->Unblock(from, to);
  }

  void Heal() {
    World& world = *cluster_.world;
    healed_ = true;
    if (world.tracing()) world.Trace("world", "heals");
    cluster_.disk->refuses = false;
    while (!blocked_.empty()) Open(blocked_.back().first, blocked_.back().second);
    // A core of hosts lives on, large enough to train; the rest is dead.
    std::vector<int> slots;
    for (int slot = 0; slot < cluster_.settings.workers; ++slot) slots.push_back(slot);
    for (size_t i = slots.size(); i > 1; --i) std::swap(slots[i - 1], slots[random_.Below(i)]);
    const int64_t core = fault_free_ ? cluster_.settings.workers
                                     : random_.Between(cluster_.settings.policy.min_workers, cluster_.settings.workers);
    for (size_t i = static_cast<size_t>(core); i < slots.size(); ++i) {
      cluster_.NeverRestart(slots[i]);
      cluster_.KillWorker(slots[i], 9);
    }
    while (!paused_.empty()) {
      const ProcessId process = paused_.back();
      if (random_.Chance(300) && process != cluster_.chief()->process() && IsOldChief(process)) {
        cluster_.KillProcess(process);
      }
      Wake(process);
    }
    // A chief may keep its ear open for members that died at the very end.
    const absl::Duration bound = absl::Seconds(90) + cluster_.settings.job.steps * absl::Milliseconds(60) +
                                 cluster_.settings.policy.training.chief_timeout;
    deadline_ = world.now() + bound;
  }

  bool IsOldChief(ProcessId process) {
    return std::any_of(cluster_.chiefs.begin(), cluster_.chiefs.end(),
                       [process](const auto& chief) { return chief->process() == process; });
  }

  void CheckBest() {
    const TrainingPolicy& training = cluster_.settings.policy.training;
    const EvaluationLedger& ledger = cluster_.oracle->reference().ledger();
    if (last_is_early()) cluster_.Cover("job ended early");
    if (!training.evaluation.keep_best || ledger.best_step == 0) return;
    cluster_.Cover("best state kept");
    const Manifest* best = cluster_.disk->At(ledger.best_step);
    if (best == nullptr || best->set_aside) {
      cluster_.oracle->Violation(absl::StrCat("the best state, of step ", ledger.best_step, ", was not kept"));
    }
  }

  bool last_is_early() const { return cluster_.oracle->reference().end_step() < cluster_.settings.job.steps; }

  void Conclude() {
    Oracle& oracle = *cluster_.oracle;
    if (!cluster_.failure().empty()) oracle.Violation(cluster_.failure());
    const int64_t last = oracle.reference().end_step();
    if (!oracle.violated() && !cluster_.done()) {
      oracle.Violation(absl::StrCat("not finished ", healed_ ? "within the bound after the world healed" : "",
                                    ": applied up to step ", oracle.highest_applied(), ", committed ",
                                    oracle.highest_committed(), " of ", last));
    }
    if (fault_free_ && cluster_.covered["Verdict"] > 0) {
      oracle.Violation("a generation was broken although nothing failed");
    }
    if (!oracle.violated()) {
      const Manifest* newest = cluster_.disk->Newest();
      if (newest == nullptr || static_cast<int64_t>(newest->snapshot.step) != last) {
        oracle.Violation(absl::StrCat("the job ended without a checkpoint of step ", last));
      } else {
        oracle.CheckState("the last checkpoint", newest->state);
        if (!newest->evaluated) oracle.Violation("the job ended without the evaluation of its last step");
        oracle.CheckLedger("the last checkpoint", newest->ledger);
        CheckBest();
      }
    }
    result_.violations = oracle.violations();
    result_.steps_applied = static_cast<uint64_t>(oracle.applied());
    result_.worker_lives = cluster_.workers.size();
    result_.chief_lives = cluster_.chiefs.size();
    result_.commits = static_cast<uint64_t>(oracle.commits());
    for (const auto& [what, count] : cluster_.covered) result_.covered[std::string(what)] = count;
    result_.simulated = cluster_.world->elapsed();
  }

  Random random_;
  Random disk_random_;
  Cluster cluster_;
  ScenarioResult result_;
  absl::Duration rate_;
  bool fault_free_ = false;
  bool healed_ = false;
  absl::Time deadline_ = absl::InfiniteFuture();
  HostId chief_host_ = Cluster::kChiefHost;
  std::vector<ProcessId> paused_;
  std::vector<std::pair<HostId, HostId>> blocked_;
};

}  // namespace

ScenarioResult RunScenario(uint64_t seed, std::ostream* trace) { return Schedule(seed, trace).Run(); }

std::string ReplayCommand(uint64_t seed) {
  return absl::StrCat("bazel-bin/tests/simulation/simulation_main --seed ", seed, " --trace");
}

}  // namespace lockstep::simulation
