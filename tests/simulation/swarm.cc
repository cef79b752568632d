#include "tests/simulation/swarm.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::simulation {
namespace {

constexpr size_t kMostFaults = 300;

// Limits other than the usual ones.
void DrawLimits(ClusterSettings& settings, Random& random) {
  chief::JobPolicy& policy = settings.policy;
  TrainingPolicy& training = policy.training;
  policy.heartbeat_limit = random.Between(absl::Seconds(1), absl::Seconds(15));
  policy.ack_limit = random.Between(absl::Milliseconds(300), absl::Seconds(3));
  policy.no_progress_limit = random.Between(absl::Seconds(4), absl::Seconds(25));
  policy.last_call = random.Between(absl::ZeroDuration(), absl::Seconds(20));
  policy.max_failures = static_cast<uint32_t>(random.Between(0, 6));
  policy.wait_for_min = random.Between(absl::Seconds(20), absl::Minutes(10));
  training.heartbeat_interval = policy.heartbeat_limit / 10;
  training.report_interval = random.Between(absl::Milliseconds(20), absl::Seconds(1));
  training.retry_interval = random.Between(absl::Milliseconds(100), absl::Seconds(3));
  training.abort_limit = random.Between(absl::Seconds(2), absl::Seconds(15));
  training.late_leave = random.Between(absl::Seconds(1), absl::Seconds(8));
  if (random.Chance(300)) policy.save_every = random.Between(absl::Seconds(1), absl::Seconds(10));
}

// Who is where, and under what name.
void DrawPlaces(ClusterSettings& settings, Random& random) {
  const int per_host = static_cast<int>(random.Between(1, 3));
  const int naming = static_cast<int>(random.Below(3));  // own names, names that the chief gives, one name per host
  for (int slot = 0; slot < settings.workers; ++slot) {
    settings.hosts.push_back(slot / per_host);
    if (naming == 0) settings.names.push_back(absl::StrCat("worker-", slot));
    if (naming == 1) settings.names.push_back("");
    if (naming == 2) settings.names.push_back(absl::StrCat("worker-", slot / per_host));
  }
}

}  // namespace

ClusterSettings DrawSettings(Random& random) {
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
  // Workers of a host that is left out end for good, and the job needs its core of hosts.
  policy.exclude_host_after = 0;
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
    training.evaluation.plateau = {.cuts = random.Chance(500),
                                   .patience = static_cast<uint64_t>(random.Between(0, 2)),
                                   .cooldown = static_cast<uint64_t>(random.Between(0, 2))};
  }
  training.samples_text = random.Chance(200);
  training.logical_shards = static_cast<uint32_t>(job.logical_shards);
  policy.lineage_per_generation = training.digest_in_acks = random.Chance(200);
  training.chief_timeout = random.Chance(500) ? absl::Seconds(600) : absl::Seconds(random.Between(10, 60));
  return settings;
}

Swarm DrawSwarm(uint64_t seed) {
  Random random(Mix(seed ^ 0x57a3ull));
  Swarm swarm;
  ClusterSettings& settings = swarm.settings = DrawSettings(random);
  if (random.Chance(250)) {
    settings.workers = static_cast<int>(random.Between(settings.workers, 6));
    settings.policy.max_workers = static_cast<uint32_t>(settings.workers);
    if (settings.policy.expected_workers > settings.policy.min_workers) {
      settings.policy.expected_workers = static_cast<uint32_t>(settings.workers);
    }
  }
  if (random.Chance(500)) DrawLimits(settings, random);
  if (random.Chance(300)) DrawPlaces(settings, random);
  if (random.Chance(200)) {
    settings.delays.high = random.Between(absl::Milliseconds(2), absl::Milliseconds(80));
    settings.delays.rare_per_mille = static_cast<int>(random.Between(0, 100));
  }
  settings.fabric_limits = FabricLimits{absl::Seconds(20), absl::Seconds(60)};
  if (random.Chance(500)) {
    settings.fabric_limits->form = random.Between(absl::Seconds(3), absl::Seconds(20));
    settings.fabric_limits->answer = random.Between(absl::Seconds(4), absl::Seconds(60));
  }
  settings.keepalive = absl::Seconds(15);
  const bool long_run = random.Chance(300);
  swarm.fault_phase = long_run ? random.Between(absl::Seconds(25), absl::Seconds(240))
                               : random.Between(absl::Seconds(1), absl::Seconds(25));
  if (long_run) settings.compute_scale = static_cast<int>(random.Between(4, 30));

  std::vector<FaultKind> drawn;  // each as often as its weight
  for (size_t kind = 0; kind < kSwarmKinds; ++kind) {
    if (!random.Chance(300)) continue;
    swarm.kinds.push_back(static_cast<FaultKind>(kind));
    for (int64_t weight = random.Between(1, 8); weight > 0; --weight) drawn.push_back(swarm.kinds.back());
  }
  if (drawn.empty()) return swarm;
  const absl::Duration rate = long_run ? random.Between(absl::Milliseconds(300), absl::Seconds(20))
                                       : random.Between(absl::Milliseconds(20), absl::Seconds(3));
  absl::Duration at = random.Between(absl::ZeroDuration(), rate);
  while (at < swarm.fault_phase && swarm.faults.size() < kMostFaults) {
    swarm.faults.push_back({at, drawn[random.Below(drawn.size())], random.Next()});
    at +=
        random.Chance(150) ? absl::Milliseconds(random.Between(0, 5)) : random.Between(absl::ZeroDuration(), 2 * rate);
  }
  return swarm;
}

Swarm DrawWideSwarm(uint64_t seed) {
  Swarm swarm = DrawSwarm(seed);
  swarm.settings.keeps_copies = Mix(seed ^ 0xc091ull) % 4 != 0;
  swarm.settings.policy.training.wait_for_saves = Mix(seed ^ 0x5a7eull) % 5 == 0;
  swarm.settings.policy.frozen_share = Mix(seed ^ 0xf20full) % 5 == 0;
  for (size_t kind = kSwarmKinds; kind < kFaultKinds; ++kind) {
    Random random(Mix(Mix(seed ^ 0x31de5ull) + kind));
    if (!random.Chance(300)) continue;
    swarm.kinds.push_back(static_cast<FaultKind>(kind));
    const bool flips = swarm.kinds.back() == FaultKind::kFlipBit;
    if (flips && random.Chance(250)) {
      // Nothing else fails, so that nothing is excused.
      swarm.settings.flips_alone = true;
      swarm.kinds = {FaultKind::kFlipBit};
      swarm.faults.clear();
    }
    const bool rare = flips || random.Chance(500);
    const absl::Duration rate = std::max(absl::Milliseconds(20), swarm.fault_phase / random.Between(1, rare ? 3 : 20));
    absl::Duration at = random.Between(absl::ZeroDuration(), rate);
    while (at < swarm.fault_phase && swarm.faults.size() < 2 * kMostFaults) {
      swarm.faults.push_back({at, swarm.kinds.back(), random.Next()});
      at += random.Between(absl::ZeroDuration(), 2 * rate);
    }
    if (swarm.settings.flips_alone) return swarm;
  }
  Random random(Mix(seed ^ 0xe8c1ull));
  // Now and then nothing fails at all, and then nothing may break.
  if (random.Chance(40)) {
    swarm.kinds.clear();
    swarm.faults.clear();
    return swarm;
  }
  // Or one worker hangs, and nothing else fails: nothing but the limit of no progress gets the job on.
  if (random.Chance(40)) {
    swarm.kinds = {FaultKind::kHangWorker};
    swarm.faults.clear();
    swarm.fault_phase = std::max(swarm.fault_phase, absl::Seconds(50));
    swarm.settings.compute_scale = std::max(swarm.settings.compute_scale, 12);
    const absl::Duration at = random.Between(absl::Seconds(1), absl::Seconds(6));
    swarm.faults.push_back({at, FaultKind::kHangWorker, random.Next()});
    return swarm;
  }
  if (random.Chance(300)) swarm.settings.policy.exclude_host_after = static_cast<uint32_t>(random.Between(1, 4));
  return swarm;
}

}  // namespace lockstep::simulation
