#include "tests/simulation/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/model_disk.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"

namespace lockstep::simulation {
namespace {

// Codes after which no supervisor starts a chief again. A worker that ended with 70 it does.
bool Final(int exit_code) {
  for (int code : {0, 64, 65, 70, 76, 77, 78}) {
    if (exit_code == code) return true;
  }
  return false;
}

}  // namespace

Cluster::Cluster(uint64_t seed, ClusterSettings cluster_settings, std::ostream* trace)
    : settings(std::move(cluster_settings)),
      world(std::make_unique<World>(seed, trace)),
      network(std::make_unique<Network>(world.get(), settings.delays)),
      oracle(std::make_unique<Oracle>(settings.job, settings.policy.training,
                                      [this](const ReplicaState& state) { return disk->DigestOf(state); })),
      fabric(std::make_unique<Fabric>(world.get(), network.get(),
                                      [this](std::string what) { oracle->Violation(std::move(what)); })),
      disk(settings.make_disk ? settings.make_disk(this) : std::make_unique<ModelDisk>(this, oracle.get())),
      current_(settings.workers, nullptr),
      restartable_(settings.workers, true) {
  if (settings.fabric_limits.has_value()) fabric->Watch(*settings.fabric_limits);
}

Cluster::~Cluster() = default;

void Cluster::Start() {
  StartChief(kChiefHost);
  for (int slot = 0; slot < settings.workers; ++slot) {
    world->AfterOutside(world->random().Between(absl::ZeroDuration(), absl::Milliseconds(300)),
                        [this, slot] { StartWorker(slot); });
  }
}

void Cluster::StartChief(HostId host) {
  if (done_) return;
  chiefs.push_back(std::make_unique<SimChief>(this, world->StartProcess(host)));
  newest_chief_ = chiefs.back().get();
  newest_chief_->Start();
}

void Cluster::StartWorker(int slot) {
  if (done_ || current_[slot] != nullptr || !restartable_[slot]) return;
  const Incarnation incarnation{0, workers.size() + 1};
  workers.push_back(std::make_unique<SimWorker>(this, slot, world->StartProcess(HostOf(slot)), incarnation));
  SimWorker* worker = workers.back().get();
  current_[slot] = worker;
  by_incarnation_[incarnation] = worker;
  world->After(worker->process(), absl::ZeroDuration(), [worker] { worker->Start(); });
}

void Cluster::KillProcess(ProcessId process) {
  world->Kill(process);
  for (const auto& chief : chiefs) {
    if (chief->process() == process) chief->Die();
  }
  network->BreakAllOf(process);
  fabric->ProcessDied(process);
}

void Cluster::KillWorker(int slot, int signal) {
  SimWorker* worker = current_[slot];
  if (worker != nullptr && signal != 9) Failed(slot);
  if (worker == nullptr) return;
  if (world->tracing()) world->Trace(worker->name(), absl::StrCat("is killed by signal ", signal));
  KillProcess(worker->process());
  WorkerGone(worker, ProcessEnd{signal, 0});
}

void Cluster::TerminateWorker(int slot, absl::Duration grace) {
  SimWorker* worker = current_[slot];
  if (worker == nullptr) return;
  if (world->tracing()) world->Trace(worker->name(), absl::StrCat("gets SIGTERM, grace ", absl::FormatDuration(grace)));
  world->After(worker->process(), absl::ZeroDuration(), [worker, grace] { worker->Terminate(grace); });
  world->AfterOutside(grace, [this, slot, worker] {
    if (current_[slot] == worker) KillWorker(slot, 9);
  });
}

void Cluster::WorkerExited(SimWorker* worker, int exit_code) {
  world->Kill(worker->process());
  for (ConnectionId id : network->LiveOf(worker->process())) network->Close(id, worker->process());
  fabric->ProcessDied(worker->process());
  WorkerGone(worker, ProcessEnd{0, exit_code});
}

std::string Cluster::HostNameOf(int slot) const { return absl::StrCat("host-", HostOf(slot)); }

std::string Cluster::NameOf(int slot) const {
  return settings.names.empty() ? absl::StrCat("worker-", slot) : settings.names[slot];
}

void Cluster::Fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void Cluster::WorkerGone(SimWorker* worker, ProcessEnd end) {
  ++ends_;
  if (end.signal == 0 && end.exit_code == 0) ended_well_.insert(worker->slot());
  current_[worker->slot()] = nullptr;
  if (!(end.signal == 0 && end.exit_code == 0)) NoteEvidence(*worker);
  if (end.signal == 0) {
    const std::string wrong = worker->WhyNotExit(end.exit_code);
    if (!wrong.empty()) Fail(absl::StrCat(worker->name(), " exits with ", end.exit_code, ": ", wrong));
    if (end.exit_code == 78 && MayBeLeftOut(worker->slot())) {
      // A person looks after the host, and starts it again.
      Cover("a host is left out");
      world->AfterOutside(absl::Seconds(10), [this, slot = worker->slot()] { StartWorker(slot); });
      return;
    }
    if (end.exit_code != 70 && Final(end.exit_code)) {
      restartable_[worker->slot()] = restartable_[worker->slot()] && end.exit_code == 0;
      return;
    }
  }
  if (SimChief* chief = newest_chief_; chief != nullptr && world->random().Chance(700)) {
    const std::string name = NameOf(worker->slot());
    if (!name.empty()) {
      network->Carry(world->host(worker->process()), chief->process(), network->Delay(), Channel::kSession,
                     [chief, name, end] { chief->ProcessEnded(name, end); });
    }
  }
  world->AfterOutside(world->random().Between(absl::Milliseconds(20), absl::Seconds(2)),
                      [this, slot = worker->slot()] { StartWorker(slot); });
}

void Cluster::KillChief(bool machine) {
  SimChief* chief = newest_chief_;
  if (chief == nullptr || !world->alive(chief->process())) return;
  if (world->tracing()) world->Trace("chief", machine ? "its machine goes down" : "is killed");
  KillProcess(chief->process());
  if (machine) disk->MachineCrash(world->random());
  world->AfterOutside(world->random().Between(absl::Milliseconds(20), absl::Seconds(3)), [this, chief] {
    if (newest_chief_ == chief) StartChief(world->host(chief->process()));
  });
}

void Cluster::ChiefExited(SimChief* chief, int exit_code) {
  if (world->tracing()) world->Trace("chief", absl::StrCat("of term ", chief->term(), " exits with ", exit_code));
  world->Kill(chief->process());
  chief->Die();
  for (ConnectionId id : network->LiveOf(chief->process())) network->Close(id, chief->process());
  const std::string wrong = chief->WhyNotExit(exit_code);
  if (!wrong.empty()) Fail(absl::StrCat("the chief of term ", chief->term(), " exits with ", exit_code, ": ", wrong));
  if (exit_code == 0) {
    done_ = true;
  } else if (exit_code != 76) {
    // After 70 it is a person who starts the job again.
    if (newest_chief_ == chief) {
      world->AfterOutside(absl::Seconds(exit_code == 70 ? 3 : 1),
                          [this, host = world->host(chief->process())] { StartChief(host); });
      // Workers that were told of the end too.
      world->AfterOutside(absl::Seconds(4), [this] {
        for (const int slot : std::exchange(ended_well_, {})) StartWorker(slot);
      });
    }
  } else if (newest_chief_ == chief) {
    // Two that started together may have claimed in the other order.
    newest_chief_ = nullptr;
    for (const auto& other : chiefs) {
      if (world->alive(other->process())) newest_chief_ = other.get();
    }
    if (newest_chief_ == nullptr && disk->highest_claim() > chief->term()) {
      // The one that fenced it was killed since, when another one was taken for the newest: its supervisor starts it.
      newest_chief_ = chief;
      world->AfterOutside(absl::Seconds(1), [this, host = world->host(chief->process())] { StartChief(host); });
    } else if (newest_chief_ == nullptr) {
      Fail(absl::StrCat("the chief of term ", chief->term(), " was fenced, but no other is alive"));
      newest_chief_ = chief;
    }
  }
}

void Cluster::CheckEnd() {
  const Reference& reference = oracle->reference();
  const int64_t last = reference.end_step();
  const std::optional<StoredCheckpoint> newest = disk->FindNewest();
  if (newest.has_value() && oracle->AllHitAlike(newest->snapshot.lineage)) {
    return Cover("bits that flipped in all replicas alike");
  }
  if (newest.has_value() && oracle->BeyondSight(newest->snapshot.lineage)) {
    if (settings.flips_alone) oracle->Violation("a bit flipped, nothing else failed, and nobody saw it");
    return Cover("a flip that nobody could see");
  }
  // A member that no chief heard until the end told nothing of its state: the last checkpoint says that it is not
  // audited.
  if (newest.has_value() && !newest->audited && oracle->spoilt(newest->snapshot.lineage) && !settings.flips_alone) {
    return Cover("a flip of a worker that was not heard before the end");
  }
  if (!newest.has_value() || static_cast<int64_t>(newest->snapshot.step) != last) {
    return oracle->Violation(absl::StrCat("the job ended without a checkpoint of step ", last));
  }
  if (!(reference.at(last) == newest->state)) {
    oracle->Violation("the job ended with other bits than an undisturbed run");
  }
  if (!newest->evaluated) oracle->Violation("the job ended without the evaluation of its last step");
  oracle->CheckLedger("the last checkpoint", newest->ledger);
  if (last < settings.job.steps) Cover("job ended early");
  const EvaluationLedger& ledger = reference.ledger();
  if (!settings.policy.training.evaluation.keep_best || ledger.best_step == 0) return;
  Cover("best state kept");
  const std::optional<StoredCheckpoint> best = disk->FindAt(ledger.best_step);
  if (!best.has_value() || best->set_aside) {
    oracle->Violation(absl::StrCat("the best state, of step ", ledger.best_step, ", was not kept"));
  }
}

// ---- people ---------------------------------------------------------------------------------------------------------

void Cluster::Drain(const std::string& target, absl::Duration within, absl::Duration time) {
  SimChief* chief = newest_chief_;
  if (chief == nullptr || !world->alive(chief->process()) || !chief->listening()) return;
  if (!drained_.insert(target).second) return;
  ever_drained_.insert(target);
  Cover("drain");
  world->After(chief->process(), absl::ZeroDuration(),
               [chief, target, within] { chief->AskDrain(target, false, within); });
  world->AfterOutside(time, [this, target] { LiftDrain(target); });
}

// A person looks at the status until the drain is gone: a chief may die before it has stored that.
void Cluster::LiftDrain(const std::string& target) {
  if (drained_.count(target) == 0) return;
  SimChief* chief = newest_chief_;
  const bool answers = chief != nullptr && world->alive(chief->process()) && !world->paused(chief->process()) &&
                       chief->listening() && !chief->hung();
  if (answers) {
    const SimChief::DrainStatus status = chief->StatusOfDrain(target);
    if (status == SimChief::DrainStatus::kNone) {
      drained_.erase(target);
      return;
    }
    // Only what this chief knows of can be undone; what stands on the disk alone is given once more first.
    const bool undo = status != SimChief::DrainStatus::kStoredOnly;
    world->After(chief->process(), absl::ZeroDuration(),
                 [chief, target, undo] { chief->AskDrain(target, undo, absl::InfiniteDuration()); });
  }
  world->AfterOutside(absl::Milliseconds(700), [this, target] { LiftDrain(target); });
}

void Cluster::EndDrains() {
  for (const std::string& target : std::set<std::string>(drained_)) LiftDrain(target);
}

bool Cluster::IsDrained(int slot) const {
  return !drained_.empty() && (drained_.count(HostNameOf(slot)) != 0 || drained_.count(NameOf(slot)) != 0);
}

bool Cluster::SharesNames() const {
  return std::set<std::string>(settings.names.begin(), settings.names.end()).size() < settings.names.size();
}

bool Cluster::WasDrained(int slot) const {
  // Who asks for a name that another process has gets one of the chief's, and passes for the drained one's successor.
  if (SharesNames() && !ever_drained_.empty()) return true;
  return ever_drained_.count(HostNameOf(slot)) != 0 || ever_drained_.count(NameOf(slot)) != 0;
}

bool Cluster::MayBeLeftOut(int slot) const {
  const uint32_t after = settings.policy.exclude_host_after;
  // Supervisors report by name: where workers share one, the chief gives some of them names that others ask for, and
  // takes the one for the other.
  const bool shared = SharesNames();
  uint32_t failures = 0;
  for (const auto& [host, count] : failures_of_) failures += shared || host == HostOf(slot) ? count : 0;
  const bool failed = failures >= after;
  return after != 0 && (failed || odd_hosts.count(HostNameOf(slot)) != 0);
}

// A flip cannot be seen once the replica that was hit is gone, or all of those that it could be compared with.
void Cluster::NoteEvidence(const SimWorker& lost) {
  if (!oracle->spoilt(lost.lineage())) return;
  const bool witness = std::any_of(current_.begin(), current_.end(), [&](const SimWorker* other) {
    return other != nullptr && other->has_state() && !other->odd() && other->lineage() == lost.lineage();
  });
  if (lost.odd() || !witness) oracle->FlipGone(lost.lineage());
}

// Where a flipped bit is in all of them alike, or in none and the others hold what followed from it, nobody can see it.
void Cluster::Formed(const SimWorker& worker, const std::vector<Member>& members) {
  if (odd_hosts.empty()) return;
  for (const Member& member : members) {
    const SimWorker* other = WorkerOf(member.incarnation);
    if (!other->has_state() || !(other->state() == worker.state())) return;
  }
  oracle->BeginAlike(worker.lineage(), worker.state());
}

SimChief* Cluster::ChiefAtAddress() {
  // Now and then somebody still finds the address of an older chief that is alive.
  if (world->random().Chance(100)) {
    for (const auto& chief : chiefs) {
      if (chief->listening() && world->alive(chief->process())) return chief.get();
    }
  }
  return address_;
}

SimWorker* Cluster::WorkerOf(const Incarnation& incarnation) const {
  const auto found = by_incarnation_.find(incarnation);
  return found == by_incarnation_.end() ? nullptr : found->second;
}

}  // namespace lockstep::simulation
