#include "tests/simulation/explore.h"

#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/sim_chief.h"

namespace lockstep::simulation {
namespace {

constexpr int kWorkers = 2;
constexpr uint64_t kMostEvents = 20000;  // of a schedule; far more than any needs
constexpr size_t kMostFailures = 10;
constexpr absl::Duration kEnough = absl::Minutes(2);

struct Kill {
  uint64_t event = 0;  // before this one
  int victim = 0;      // a slot; kWorkers: the chief
};

struct Choices {
  std::vector<Kill> kills;
  std::vector<uint64_t> late;
};

struct Outcome {
  uint64_t events = 0;
  uint64_t draws = 0;
  uint64_t history = 0;
  std::string violation;
};

ClusterSettings SmallScope() {
  ClusterSettings settings;
  settings.workers = kWorkers;
  settings.job = TinyJob{.samples = 6, .global_batch = 4, .logical_shards = 2, .steps = 4};
  chief::JobPolicy& policy = settings.policy;
  policy.job = "job";
  policy.lineage = "lineage";
  policy.metagraph = "metagraph";
  policy.min_workers = 1;
  policy.max_workers = kWorkers;
  policy.expected_workers = kWorkers;
  policy.exclude_host_after = 0;
  policy.last_call = absl::Seconds(2);
  policy.training.chief_timeout = absl::Seconds(20);  // for as long a chief tells lost members of the end
  policy.training.end_step = static_cast<uint64_t>(settings.job.steps);
  policy.training.snapshot_every_steps = 2;
  policy.training.logical_shards = static_cast<uint32_t>(settings.job.logical_shards);
  settings.delays = NetworkDelays{absl::Milliseconds(1), absl::Milliseconds(30), absl::Milliseconds(30), 0};
  settings.fabric_limits = FabricLimits{absl::Seconds(20), absl::Seconds(60)};
  settings.keepalive = absl::Seconds(15);
  return settings;
}

Outcome Run(const Choices& choices) {
  Script script{choices.late};
  Cluster cluster(1, SmallScope(), nullptr);
  cluster.record_history = true;
  cluster.world->random().Follow(&script);
  cluster.Start();
  Outcome outcome;
  size_t killed = 0;
  Oracle& oracle = *cluster.oracle;
  while (!cluster.done() && !oracle.violated() && cluster.failure().empty()) {
    for (; killed < choices.kills.size() && choices.kills[killed].event == outcome.events; ++killed) {
      const int victim = choices.kills[killed].victim;
      victim < kWorkers ? cluster.KillWorker(victim, 9) : cluster.KillChief(/*machine=*/false);
    }
    if (++outcome.events > kMostEvents || cluster.world->elapsed() > kEnough || !cluster.world->RunOne()) break;
  }
  if (!cluster.failure().empty()) oracle.Violation(cluster.failure());
  if (!oracle.violated() && !cluster.done()) oracle.Violation("the job did not end");
  if (!oracle.violated()) cluster.CheckEnd();
  if (oracle.violated()) outcome.violation = oracle.violations()[0];
  outcome.draws = script.draws;
  outcome.history = cluster.history();
  return outcome;
}

class Explorer {
 public:
  explicit Explorer(const Scope& scope) : scope_(scope) {}

  Explored Run() {
    Visit({}, scope_.kills, scope_.late);
    return std::move(explored_);
  }

 private:
  // Kills are chosen first, then what is late.
  void Visit(const Choices& choices, uint64_t kills, uint64_t late) {
    if (explored_.runs >= scope_.most_runs || explored_.failures.size() >= kMostFailures) {
      explored_.exhausted = false;
      return;
    }
    const Outcome outcome = simulation::Run(choices);
    ++explored_.runs;
    if (!outcome.violation.empty()) return Failed(choices, outcome.violation);
    if (seen_.insert(outcome.history).second) ++explored_.distinct;
    // The same history with the same choices left leads to nothing new.
    if (!expanded_.insert(Mix(outcome.history ^ Mix(kills * 64 + late))).second) return;
    if (kills > 0 && choices.late.empty()) {
      const uint64_t first = choices.kills.empty() ? 0 : choices.kills.back().event + 1;
      for (uint64_t event = first; event < outcome.events; ++event) {
        for (int victim = 0; victim <= kWorkers; ++victim) {
          if (LeftOut()) continue;
          Choices next = choices;
          next.kills.push_back({event, victim});
          Visit(next, kills - 1, late);
        }
      }
    }
    if (late == 0) return;
    for (uint64_t draw = choices.late.empty() ? 0 : choices.late.back() + 1; draw < outcome.draws; ++draw) {
      if (LeftOut()) continue;
      Choices next = choices;
      next.late.push_back(draw);
      Visit(next, 0, late - 1);
    }
  }

  bool LeftOut() {
    if (scope_.stride <= 1 || ++choice_ % scope_.stride == 0) return false;
    explored_.exhausted = false;
    return true;
  }

  void Failed(const Choices& choices, const std::string& violation) {
    std::string what;
    for (const Kill& kill : choices.kills) {
      const std::string victim = kill.victim < kWorkers ? absl::StrCat("worker ", kill.victim) : "the chief";
      absl::StrAppend(&what, victim, " killed before event ", kill.event, ", ");
    }
    explored_.failures.push_back(absl::StrCat(what, "late: ", absl::StrJoin(choices.late, ","), ": ", violation));
  }

  const Scope scope_;
  Explored explored_;
  std::unordered_set<uint64_t> seen_;      // histories
  std::unordered_set<uint64_t> expanded_;  // with what was left to choose
  uint64_t choice_ = 0;
};

}  // namespace

Explored Explore(const Scope& scope) { return Explorer(scope).Run(); }

}  // namespace lockstep::simulation
