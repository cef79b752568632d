#include "tests/simulation/progress_oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "chief/core/audit_return.h"
#include "chief/core/checkpoint_tracker.h"
#include "chief/core/coordinator.h"
#include "chief/core/formation_backoff.h"
#include "chief/core/reachability.h"
#include "chief/core/storage_trouble.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"
#include "worker/session/session_core.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(250);
constexpr absl::Duration kConnectLimit = absl::Seconds(3);                // of an attempt that nothing answers
constexpr absl::Duration kGreetingLimit = absl::Seconds(5);               // of a Hello that nothing answers
constexpr absl::Duration kLongestPreparation = absl::Milliseconds(1200);  // the plan, then the replica
constexpr absl::Duration kMessages = absl::Seconds(1);  // between all of what follows, each late now and then
constexpr absl::Duration kUploadLimit = absl::Seconds(4);
constexpr absl::Duration kLateTick = worker::SessionCore::kTickGap;

}  // namespace

namespace {

// Until a worker that hangs is given up: it has twice as long each time.
absl::Duration NoProgress(const ClusterSettings& settings, const Hardships& hardships) {
  return settings.policy.no_progress_limit * (int64_t{1} << std::min(hardships.hangs - 1, 10));
}

// Until somebody who is gone, cut off or hangs is given up: these run side by side.
absl::Duration GivenUp(const ClusterSettings& settings, const Hardships& hardships) {
  const chief::JobPolicy& policy = settings.policy;
  absl::Duration longest = policy.heartbeat_limit;
  if (settings.fabric_limits.has_value()) {
    const absl::Duration group = std::max(settings.fabric_limits->form, settings.fabric_limits->answer);
    if (hardships.cuts > 0) longest = std::max({longest, group, settings.keepalive});
    if (hardships.peers > 0) longest = std::max(longest, std::min(group, Hardships::kLongestPeerTrouble));
  }
  if (hardships.hangs > 0) {
    longest = std::max(longest, std::min(NoProgress(settings, hardships), Hardships::kLongestHang) + kLateTick);
  }
  return longest + chief::Coordinator::kTickEvery;  // ticks alone judge it
}

// Until nothing waits for it any more either. A worker that hangs keeps its session, and may hold what nobody has
// saved: nothing older is restored until it stopped computing, or ended its process because it did not.
absl::Duration Over(const ClusterSettings& settings, const Hardships& hardships) {
  const absl::Duration given_up = GivenUp(settings, hardships);
  if (hardships.hangs == 0) return given_up;
  const absl::Duration ended = NoProgress(settings, hardships) + settings.policy.training.abort_limit;
  return std::max(given_up, std::min(ended, Hardships::kLongestHang) + kLateTick + chief::Coordinator::kTickEvery);
}

// A restore waits for workers that are expected.
absl::Duration LastCall(const chief::JobPolicy& policy) {
  return policy.expected_workers > policy.min_workers ? policy.last_call : absl::ZeroDuration();
}

}  // namespace

void Hardships::Count(FaultKind kind) {
  switch (kind) {
    case FaultKind::kCutHosts:
    case FaultKind::kCutChannel:
    case FaultKind::kRefuseConnects:
      ++cuts;
      break;
    case FaultKind::kHangWorker:
      ++hangs;
      break;
    case FaultKind::kBlockDirection:
    case FaultKind::kPauseWorker:
    case FaultKind::kBreakGroup:
    case FaultKind::kNoPeers:
      ++peers;
      break;
    case FaultKind::kFillDisk:
    case FaultKind::kStallDisk:
    case FaultKind::kRefuseOnce:
      ++storage;
      break;
    case FaultKind::kFlipBit:
      ++flips;
      break;
    default:
      break;
  }
}

absl::Duration ProgressOracle::Limit(const ClusterSettings& settings, const Hardships& hardships) {
  const chief::JobPolicy& policy = settings.policy;
  const TrainingPolicy& training = policy.training;
  const absl::Duration silence =
      std::max(worker::SessionCore::kChiefSilence, worker::SessionCore::kBeatsMissed * training.heartbeat_interval);
  // Workers find the chief, which listens for a running generation and gives up who is not there, side by side.
  const absl::Duration found = std::max({silence, kConnectLimit, kGreetingLimit}) + 2 * training.retry_interval;
  absl::Duration limit = std::max(found, Over(settings, hardships));
  limit += kMessages;
  // What ran is ended, workers prepare, a restore waits for more of them.
  limit += 2 * policy.ack_limit + kLongestPreparation + LastCall(policy);
  // A save that members wait for: a share is asked again; where a member may be unable to tell of its snapshot, it is
  // waited for.
  limit += kUploadLimit + 2 * chief::CheckpointTracker::kRetry;
  if (hardships.cuts + hardships.peers > 0) limit += chief::CheckpointTracker::kShareWait;
  // A pair that is in doubt is tested again, and one that was apart, or a worker that could not do its part, pauses.
  if (const int broken = hardships.peers + hardships.cuts; broken > 0) {
    const absl::Duration doubled = absl::Seconds(1) * (int64_t{1} << std::min(broken, 10));
    limit += std::min(doubled, chief::FormationBackoff::kLongest) + chief::Reachability::kDoubt;
    limit += std::min(doubled, chief::Reachability::kLongestPause) + kConnectLimit;
  }
  if (hardships.cuts > 0) limit += chief::Reachability::kPatience;
  if (hardships.storage > 0) limit += chief::StorageTrouble::kLastRetry;
  // The digests of the others are awaited, then everybody goes back.
  if (hardships.flips > 0) limit += policy.heartbeat_limit + 3 * policy.ack_limit;
  // Copies are tried one after the other; who is to take up one is lost meanwhile, or stands still.
  if (hardships.flips > 0 && settings.keeps_copies) {
    limit += static_cast<int64_t>(kMaxKeptStates) * (chief::AuditReturn::kComesBack + GivenUp(settings, hardships));
  }
  return limit;
}

absl::Duration ProgressOracle::Each(const ClusterSettings& settings, const Hardships& hardships) {
  return Over(settings, hardships) + settings.policy.ack_limit + LastCall(settings.policy);
}

absl::Duration ProgressOracle::Most(const ClusterSettings& settings, const std::vector<FaultKind>& kinds) {
  Hardships hardships;
  for (const FaultKind kind : kinds) {
    for (int i = 0; i < 10; ++i) hardships.Count(kind);
  }
  const int others = settings.workers - static_cast<int>(settings.policy.min_workers);
  return Limit(settings, hardships) + others * Each(settings, hardships);
}

ProgressOracle::ProgressOracle(Cluster* cluster)
    : cluster_(cluster),
      progressed_(cluster->world->now()),
      processes_(cluster->settings.workers, -1),
      since_(cluster->settings.workers, absl::InfiniteFuture()) {}

void ProgressOracle::Struck(FaultKind kind) {
  hardships_.Count(kind);
  struck_.push_back(cluster_->world->now());
  if (struck_.size() > since_.size()) struck_.pop_front();
}

absl::Duration ProgressOracle::AllowedSince(absl::Time since) const {
  const ClusterSettings& settings = cluster_->settings;
  const auto others = static_cast<int64_t>(since_.size()) - settings.policy.min_workers;
  const auto struck = static_cast<int64_t>(
      std::count_if(struck_.begin(), struck_.end(), [since](absl::Time when) { return when >= since; }));
  return Limit(settings, hardships_) + std::min(struck, others) * Each(settings, hardships_);
}

void ProgressOracle::Look() {
  const absl::Time now = cluster_->world->now();
  if (cluster_->progress() != progress_) {
    progress_ = cluster_->progress();
    progressed_ = now;
  }
  for (; ends_ < cluster_->ends(); ++ends_) {
    struck_.push_back(now);
    if (struck_.size() > since_.size()) struck_.pop_front();
  }
  if (refused_ != cluster_->disk->refused && cluster_->chief() != nullptr) {
    refused_ = cluster_->disk->refused;
    Disturbed(cluster_->chief()->process());
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
                    worker->sound() && cluster_->cut_off.count(host) == 0 && !cluster_->IsDrained(slot) &&
                    cluster_->chief() != nullptr &&
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
    const absl::Duration bound =
        cluster_->settings.policy.training.chief_timeout + Limit(cluster_->settings, hardships_);
    if (chief_since_ != absl::InfiniteFuture() && now - std::max(done_since_, chief_since_) > bound) {
      cluster_->oracle->Violation(
          absl::StrCat("no progress: the chief tells of the end for more than ", absl::FormatDuration(bound)));
    }
    return;
  }
  done_since_ = absl::InfiniteFuture();
  if (now - progressed_ < absl::Seconds(1)) return;
  const absl::Time since = std::max(progressed_, CliqueSince());
  if (since >= now) return;
  const absl::Duration waited = now - since;
  const absl::Duration allowed = AllowedSince(since);
  longest_ = std::max(longest_, waited);
  largest_share_ = std::max(largest_share_, absl::FDivDuration(waited, allowed));
  if (waited <= allowed) return;
  cluster_->oracle->Violation(absl::StrCat("no progress for ", absl::FormatDuration(waited),
                                           " although enough workers reach the chief and each other, and ",
                                           absl::FormatDuration(allowed), " are allowed"));
}

}  // namespace lockstep::simulation
