#include "tests/simulation/progress_oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "chief/core/checkpoint_tracker.h"
#include "chief/core/formation_backoff.h"
#include "chief/core/reachability.h"
#include "chief/core/storage_trouble.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"
#include "worker/session/session_core.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(250);
constexpr absl::Duration kConnectLimit = absl::Seconds(3);   // of an attempt that nothing answers
constexpr absl::Duration kGreetingLimit = absl::Seconds(5);  // of a Hello that nothing answers
constexpr absl::Duration kLongestPreparation = absl::Seconds(2);
constexpr absl::Duration kUploadLimit = absl::Seconds(4);

}  // namespace

absl::Duration ProgressOracle::Limit(const ClusterSettings& settings, const Hardships& hardships) {
  const chief::JobPolicy& policy = settings.policy;
  const TrainingPolicy& training = policy.training;
  const absl::Duration silence =
      std::max(worker::SessionCore::kChiefSilence, worker::SessionCore::kBeatsMissed * training.heartbeat_interval);
  // A worker finds the chief: it gives up one that is silent, and perhaps an attempt and a Hello that nobody answers.
  absl::Duration limit = silence + kConnectLimit + kGreetingLimit + 3 * training.retry_interval;
  // The chief finds out who is gone, listens for a running generation, and is answered.
  limit += 3 * policy.heartbeat_limit + 2 * policy.ack_limit;
  // One of the others makes the plan, all prepare, a restore waits for more workers, broken generations pause.
  limit += 2 * kLongestPreparation + policy.last_call + chief::FormationBackoff::kLongest;
  // A pair that is in doubt, or whose test was lost, is tested again; a share that is lost is asked again.
  limit += chief::Reachability::kPatience + chief::Reachability::kDoubt;
  limit += chief::CheckpointTracker::kShareWait + kUploadLimit + 2 * chief::CheckpointTracker::kRetry;
  const int others = settings.workers - static_cast<int>(policy.min_workers);
  absl::Duration each = policy.heartbeat_limit + policy.ack_limit + policy.last_call;
  if (hardships.cuts && settings.fabric_limits.has_value()) {
    each += settings.fabric_limits->form + settings.fabric_limits->answer + settings.keepalive;
  }
  if (hardships.hangs) each += 2 * std::max(policy.no_progress_limit, hardships.longest_hang) + training.abort_limit;
  // Each of the others may hold the job up once.
  limit += others * each;
  if (hardships.peers || hardships.cuts) limit += chief::Reachability::kLongestPause + kConnectLimit;
  if (hardships.storage) limit += chief::StorageTrouble::kLastRetry;
  return limit;
}

ProgressOracle::ProgressOracle(Cluster* cluster, const Hardships& hardships)
    : cluster_(cluster),
      limit_(Limit(cluster->settings, hardships)),
      progressed_(cluster->world->now()),
      processes_(cluster->settings.workers, -1),
      since_(cluster->settings.workers, absl::InfiniteFuture()) {}

void ProgressOracle::Look() {
  const absl::Time now = cluster_->world->now();
  if (cluster_->progress() != progress_) {
    progress_ = cluster_->progress();
    progressed_ = now;
  }
  chief_since_ = ChiefSince();
  for (int slot = 0; slot < cluster_->settings.workers; ++slot) NoteWorker(slot);
  for (int a = 0; a < cluster_->settings.workers; ++a) {
    for (int b = 0; b < a; ++b) NotePair(a, b);
  }
  Judge();
  cluster_->world->AfterOutside(kLookEvery, [this] { Look(); });
}

absl::Time ProgressOracle::ChiefSince() {
  const World& world = *cluster_->world;
  const absl::Time never = absl::InfiniteFuture();
  const SimChief* chief = cluster_->chief();
  if (chief == nullptr || !world.alive(chief->process()) || !chief->listening()) return never;
  if (world.paused(chief->process()) || chief->hung()) return never;
  if (cluster_->disk->refuses || world.now() < cluster_->disk->stalls_until) return never;
  // While there are two, a worker may find the wrong one.
  for (const auto& other : cluster_->chiefs) {
    if (other.get() != chief && world.alive(other->process())) return never;
  }
  if (chief_ != chief->process() || chief_since_ == never) {
    chief_ = chief->process();
    chief_since_ = world.now();
  }
  const auto disturbed = disturbed_.find(chief_);
  return disturbed == disturbed_.end() ? chief_since_ : std::max(chief_since_, disturbed->second);
}

void ProgressOracle::NoteWorker(int slot) {
  const World& world = *cluster_->world;
  const SimWorker* worker = cluster_->worker(slot);
  const HostId host = cluster_->HostOf(slot);
  const bool able = worker != nullptr && world.alive(worker->process()) && !world.paused(worker->process()) &&
                    worker->sound() && cluster_->cut_off.count(host) == 0 && cluster_->chief() != nullptr &&
                    !cluster_->network->apart(host, world.host(cluster_->chief()->process()));
  if (!able) {
    since_[slot] = absl::InfiniteFuture();
    return;
  }
  if (processes_[slot] != worker->process() || since_[slot] == absl::InfiniteFuture()) since_[slot] = world.now();
  processes_[slot] = worker->process();
  const auto disturbed = disturbed_.find(worker->process());
  if (disturbed != disturbed_.end()) since_[slot] = std::max(since_[slot], disturbed->second);
}

void ProgressOracle::NotePair(int a, int b) {
  const auto key = std::pair(a, b);
  if (cluster_->network->apart(cluster_->HostOf(a), cluster_->HostOf(b))) {
    pairs_.erase(key);
  } else {
    pairs_.emplace(key, cluster_->world->now());
  }
}

absl::Time ProgressOracle::CliqueSince() const {
  const auto workers = static_cast<uint32_t>(since_.size());
  absl::Time best = absl::InfiniteFuture();
  for (uint32_t set = 1; set < 1u << workers; ++set) {
    if (static_cast<uint32_t>(__builtin_popcount(set)) != cluster_->settings.policy.min_workers) continue;
    absl::Time since = chief_since_;
    for (uint32_t a = 0; a < workers && since < best; ++a) {
      if ((set >> a & 1u) == 0) continue;
      since = std::max(since, since_[a]);
      for (uint32_t b = 0; b < a; ++b) {
        if ((set >> b & 1u) == 0) continue;
        const auto pair = pairs_.find({static_cast<int>(a), static_cast<int>(b)});
        since = std::max(since, pair == pairs_.end() ? absl::InfiniteFuture() : pair->second);
      }
    }
    best = std::min(best, since);
  }
  return best;
}

void ProgressOracle::Judge() {
  const absl::Time now = cluster_->world->now();
  const bool done = cluster_->chief() != nullptr && cluster_->chief()->phase() == chief::Phase::kDone;
  if (done) {
    // Members that were lost may come back to hear of the end.
    done_since_ = std::min(done_since_, now);
    progressed_ = now;
    const absl::Duration bound = cluster_->settings.policy.training.chief_timeout + limit_;
    if (chief_since_ != absl::InfiniteFuture() && now - std::max(done_since_, chief_since_) > bound) {
      cluster_->oracle->Violation(
          absl::StrCat("no progress: the chief tells of the end for more than ", absl::FormatDuration(bound)));
    }
    return;
  }
  done_since_ = absl::InfiniteFuture();
  if (now - progressed_ <= longest_) return;
  const absl::Time since = std::max(progressed_, CliqueSince());
  if (since >= now) return;
  longest_ = std::max(longest_, now - since);
  if (longest_ <= limit_) return;
  cluster_->oracle->Violation(absl::StrCat("no progress for ", absl::FormatDuration(longest_),
                                           " although enough workers reach the chief and each other"));
}

}  // namespace lockstep::simulation
