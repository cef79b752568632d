#include "tests/simulation/faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"

namespace lockstep::simulation {
namespace {

constexpr const char* kNames[] = {
    "kill worker",           "terminate worker", "pause worker", "kill chief",     "pause chief",
    "pause chief at commit", "break session",    "break group",  "block",          "stop job",
    "kill all workers",      "fill disk",        "stall disk",   "cut hosts",      "cut channel",
    "refuse connect",        "hang worker",      "hang chief",   "cannot prepare", "no peers",
    "report error",          "crash worker",     "flip bit",     "drain",          "bad host",
    "refuse a write",        "change by hand"};
static_assert(std::size(kNames) == kFaultKinds);

}  // namespace

const char* NameOf(FaultKind kind) { return kNames[static_cast<size_t>(kind)]; }

Faults::Faults(Cluster* cluster, std::function<void(ProcessId)> disturbed)
    : cluster_(cluster), disturbed_(std::move(disturbed)) {}

void Faults::Say(const std::string& what) const {
  if (cluster_->world->tracing()) cluster_->world->Trace("fault", what);
}

void Faults::Inject(FaultKind kind, Random& random) {
  switch (kind) {
    case FaultKind::kKillWorker:
      return cluster_->KillWorker(RandomSlot(random), 9);
    case FaultKind::kTerminateWorker:
      return Terminate(random);
    case FaultKind::kKillChief:
      return KillChief(random);
    case FaultKind::kPauseChief:
      return PauseChief(cluster_->chief()->process(), random.Chance(500), random);
    case FaultKind::kPauseChiefAtCommit:
      return PauseChiefAtCommit(random);
    case FaultKind::kBreakConnection:
      return BreakConnection(random);
    case FaultKind::kBreakGroup:
      return BreakGroup(random);
    case FaultKind::kBlockDirection:
      return BlockDirection(random);
    case FaultKind::kStopJob:
      return StopJob(/*whole=*/random.Chance(500));
    case FaultKind::kKillAll:
      return KillAll(random);
    case FaultKind::kFillDisk:
      return FillDisk(random.Between(absl::Milliseconds(5), absl::Seconds(random.Chance(500) ? 1 : 20)));
    case FaultKind::kStallDisk:
      return StallDisk(random.Between(absl::Milliseconds(100), absl::Seconds(random.Chance(500) ? 2 : 40)));
    case FaultKind::kCutHosts:
      return Cut(false, random);
    case FaultKind::kCutChannel:
      return Cut(true, random);
    case FaultKind::kRefuseConnects:
      return RefuseConnects(random);
    case FaultKind::kHangChief:
      return HangChief(random);
    case FaultKind::kFlipBit:
      return FlipBit(random);
    case FaultKind::kDrain:
      return Drain(random);
    case FaultKind::kBadHost: {
      const HostId host = cluster_->HostOf(RandomSlot(random));
      const int crashes = static_cast<int>(random.Between(2, 8));
      Say(absl::StrCat("the processes of ", host, " crash ", crashes, " times"));
      return BadHost(host, crashes, random);
    }
    case FaultKind::kRefuseOnce: {
      cluster_->disk->refuses_once.insert(static_cast<DiskWrite>(random.Below(kDiskWrites)));
      return;
    }
    case FaultKind::kByHand:
      return ChangeByHand(random);
    case FaultKind::kPauseWorker:
    case FaultKind::kHangWorker:
    case FaultKind::kCannotPrepare:
    case FaultKind::kNoPeers:
    case FaultKind::kReportError:
    case FaultKind::kCrashWorker:
      return OneWorker(kind, random);
  }
}

void Faults::OneWorker(FaultKind kind, Random& random) {
  const int slot = RandomSlot(random);
  SimWorker* worker = cluster_->worker(slot);
  if (worker == nullptr) return;
  World& world = *cluster_->world;
  if (kind == FaultKind::kPauseWorker) {
    return Pause(worker->process(), random.Between(absl::Milliseconds(20), absl::Seconds(random.Chance(300) ? 12 : 2)));
  }
  if (kind == FaultKind::kCannotPrepare) return CannotPrepare(slot, random);
  if (kind == FaultKind::kCrashWorker) return cluster_->KillWorker(slot, 11);
  if (kind == FaultKind::kReportError) {
    Say(absl::StrCat(worker->name(), " breaks down"));
    cluster_->Failed(slot);
    return world.After(worker->process(), absl::ZeroDuration(), [worker] { worker->BreakDown(); });
  }
  const absl::Duration time = random.Between(absl::Seconds(1), absl::Seconds(random.Chance(500) ? 8 : 40));
  if (kind == FaultKind::kHangWorker) {
    Say(absl::StrCat(worker->name(), " computes without end for ", absl::FormatDuration(time)));
    worker->HangUntil(world.now() + time);
  } else {
    Say(absl::StrCat(worker->name(), " cannot listen for ", absl::FormatDuration(time)));
    worker->NoPeersUntil(world.now() + time);
  }
}

void Faults::CannotPrepare(int slot, Random& random) {
  // It never comes back: only where the others are enough.
  uint32_t others = 0;
  for (int other = 0; other < cluster_->settings.workers; ++other) {
    others += other != slot && cluster_->restartable(other) ? 1 : 0;
  }
  if (others < cluster_->settings.policy.min_workers) return;
  const auto problem = static_cast<PrepareProblem>(random.Below(5));
  Say(absl::StrCat(cluster_->worker(slot)->name(), " will not be able to prepare"));
  cluster_->worker(slot)->FailToPrepare(problem);
  cluster_->NeverRestart(slot);
}

void Faults::FlipBit(Random& random) {
  SimWorker* worker = RandomWorker(random);
  if (worker != nullptr) worker->FlipBit(random);
}

void Faults::Drain(Random& random) {
  const int slot = RandomSlot(random);
  const std::vector<std::string>& names = cluster_->settings.names;
  const std::string name = cluster_->NameOf(slot);
  const bool own = !name.empty() && std::count(names.begin(), names.end(), name) < 2;
  const std::string target = own && random.Chance(600) ? name : cluster_->HostNameOf(slot);
  const absl::Duration within =
      random.Chance(500) ? absl::InfiniteDuration() : random.Between(absl::ZeroDuration(), absl::Seconds(10));
  const absl::Duration time = random.Between(absl::Milliseconds(100), absl::Seconds(random.Chance(500) ? 4 : 30));
  Say(absl::StrCat(target, " is drained for ", absl::FormatDuration(time), ", within ", absl::FormatDuration(within)));
  cluster_->Drain(target, within, time);
}

void Faults::ChangeByHand(Random random) {
  SimChief* chief = cluster_->chief();
  if (!cluster_->world->alive(chief->process()) || !chief->listening()) return;
  cluster_->world->After(chief->process(), absl::ZeroDuration(), [chief, random] { chief->ChangeByHand(random); });
}

void Faults::BadHost(HostId host, int crashes, Random random) {
  if (healed_ || crashes == 0) return;
  for (int slot = 0; slot < cluster_->settings.workers; ++slot) {
    if (cluster_->HostOf(slot) != host || cluster_->worker(slot) == nullptr) continue;
    cluster_->KillWorker(slot, random.Chance(500) ? 11 : 6);
    --crashes;
    break;
  }
  const absl::Duration time = random.Between(absl::Milliseconds(50), absl::Seconds(3));
  cluster_->world->AfterOutside(time, [this, host, crashes, random] { BadHost(host, crashes, random); });
}

void Faults::StopJob(bool whole) {
  SimChief* chief = cluster_->chief();
  if (!cluster_->world->alive(chief->process()) || !chief->listening()) return;
  Say(whole ? "the job is asked to stop" : "the chief is asked to go");
  cluster_->world->After(chief->process(), absl::ZeroDuration(), [chief, whole] { chief->AskStop(whole); });
}

void Faults::KillAll(Random& random) {
  for (int slot = 0; slot < cluster_->settings.workers; ++slot) cluster_->KillWorker(slot, 9);
  if (random.Chance(500)) cluster_->KillChief(random.Chance(300));
}

void Faults::HangChief(Random& random) {
  SimChief* chief = cluster_->chief();
  if (!cluster_->world->alive(chief->process()) || chief->hung()) return;
  Say("the chief's loop stands still");
  chief->Hang();
  cluster_->world->AfterOutside(absl::Seconds(8) + random.Between(absl::ZeroDuration(), absl::Seconds(1)),
                                [this, chief] {
                                  if (cluster_->chief() == chief) return cluster_->KillChief(false);
                                  cluster_->KillProcess(chief->process());
                                });
}

void Faults::RefuseConnects(Random& random) {
  const HostId host = cluster_->HostOf(RandomSlot(random));
  const absl::Duration time = random.Between(absl::Seconds(1), absl::Seconds(30));
  if (!cluster_->cut_off.insert(host).second) return;
  Say(absl::StrCat("no connection from ", host, " for ", absl::FormatDuration(time)));
  cluster_->world->AfterOutside(time, [this, host] { cluster_->cut_off.erase(host); });
}

void Faults::Terminate(Random& random) {
  const absl::Duration grace = random.Chance(300) ? random.Between(absl::Milliseconds(50), absl::Seconds(1))
                                                  : random.Between(absl::Seconds(1), absl::Seconds(30));
  if (random.Chance(150)) {
    for (int slot = 0; slot < cluster_->settings.workers; ++slot) cluster_->TerminateWorker(slot, grace);
  } else {
    cluster_->TerminateWorker(RandomSlot(random), grace);
  }
}

void Faults::Pause(ProcessId process, absl::Duration time) {
  World& world = *cluster_->world;
  if (!world.alive(process) || world.paused(process)) return;
  Say(absl::StrCat("process ", process, " stops for ", absl::FormatDuration(time)));
  world.Pause(process);
  paused_.push_back(process);
  world.AfterOutside(time, [this, process] { Wake(process); });
}

void Faults::Wake(ProcessId process) {
  const auto found = std::find(paused_.begin(), paused_.end(), process);
  if (found == paused_.end()) return;
  paused_.erase(found);
  cluster_->world->Resume(process);
}

void Faults::KillChief(Random& random) {
  const bool machine = random.Chance(200);
  if (!cluster_->disk->stops_halfway() || random.Chance(500)) return cluster_->KillChief(machine);
  // In the middle of its next call to the storage.
  cluster_->on_stop = [faults = this, machine](ProcessId process) {
    Cluster* const cluster = faults->cluster_;
    const bool down = machine;
    if (process != cluster->chief()->process()) return;
    cluster->on_stop = nullptr;  // this function is gone from here on
    cluster->Cover(down ? "a machine goes down within a call" : "a chief is killed within a call");
    cluster->KillChief(down);
  };
}

void Faults::PauseChief(ProcessId chief, bool replace, Random& random) {
  if (!cluster_->world->alive(chief)) return;
  Pause(chief, random.Between(absl::Milliseconds(50), absl::Seconds(10)));
  // Somebody takes the silence for death, and now there are two.
  if (!replace) return;
  cluster_->world->AfterOutside(random.Between(absl::Milliseconds(10), absl::Seconds(2)),
                                [this] { cluster_->StartChief(++chief_host_); });
}

void Faults::PauseChiefAtCommit(Random& random) {
  cluster_->on_commit = [faults = this, stream = random](ProcessId chief) {
    Faults* const self = faults;
    Random own = stream;
    self->cluster_->on_commit = nullptr;  // this function is gone from here on
    if (!self->healed_) self->PauseChief(chief, true, own);
  };
}

void Faults::BreakConnection(Random& random) {
  const std::vector<ConnectionId> live = cluster_->network->Live();
  if (live.empty()) return;
  const ConnectionId id = live[random.Below(live.size())];
  Say(absl::StrCat("connection ", id, " breaks"));
  const auto [a, b] = cluster_->network->EndsOf(id);
  disturbed_(a);
  disturbed_(b);
  cluster_->network->Break(id);
}

void Faults::BreakGroup(Random& random) {
  const std::vector<GroupKey> live = cluster_->fabric->Live();
  if (live.empty()) return;
  const GroupKey key = live[random.Below(live.size())];
  Say(absl::StrCat("the group of ", key.term, ".", key.counter, " breaks"));
  for (ProcessId process : cluster_->fabric->ProcessesOf(key)) disturbed_(process);
  cluster_->fabric->Break(key);
}

std::vector<HostId> Faults::Hosts() const {
  std::vector<HostId> hosts = {cluster_->world->host(cluster_->chief()->process())};
  for (int slot = 0; slot < cluster_->settings.workers; ++slot) hosts.push_back(cluster_->HostOf(slot));
  return hosts;
}

void Faults::BlockDirection(Random& random) {
  const std::vector<HostId> hosts = Hosts();
  const HostId from = hosts[random.Below(hosts.size())];
  const HostId to = hosts[random.Below(hosts.size())];
  if (from == to || cluster_->network->blocked(from, to)) return;
  Block(from, to, kAllChannels, random.Between(absl::Milliseconds(50), absl::Seconds(9)));
}

void Faults::Cut(bool one_channel, Random& random) {
  const std::vector<HostId> hosts = Hosts();
  const HostId from = hosts[random.Below(hosts.size())];
  const HostId to = hosts[random.Below(hosts.size())];
  if (from == to) return;
  const uint32_t channels = one_channel ? 1u << random.Below(kChannels) : kAllChannels;
  const absl::Duration time = random.Between(absl::Seconds(5), absl::Seconds(random.Chance(500) ? 30 : 150));
  Block(from, to, channels, time);
  if (random.Chance(600)) Block(to, from, channels, time);
}

void Faults::Block(HostId from, HostId to, uint32_t channels, absl::Duration time) {
  static constexpr const char* kChannelNames[] = {"session", "beats", "uploads", "peers"};
  std::string what = channels == kAllChannels ? "nothing" : "";
  for (size_t channel = 0; channels != kAllChannels && channel < kChannels; ++channel) {
    if ((channels >> channel & 1u) != 0) what = absl::StrCat("none of the ", kChannelNames[channel]);
  }
  Say(absl::StrCat(what, " gets from ", from, " to ", to, " for ", absl::FormatDuration(time)));
  cluster_->network->Block(from, to, channels);
  const uint64_t id = ++next_block_;
  blocked_.push_back({id, from, to, channels});
  cluster_->world->AfterOutside(time, [this, id] { Open(id); });
}

void Faults::Open(uint64_t id) {
  const auto found =
      std::find_if(blocked_.begin(), blocked_.end(), [id](const Blocked& blocked) { return blocked.id == id; });
  if (found == blocked_.end()) return;
  const Blocked blocked = *found;
  blocked_.erase(found);
  cluster_->network->Unblock(blocked.from, blocked.to, blocked.channels);
}

void Faults::FillDisk(absl::Duration time) {
  Say(absl::StrCat("the disk is full for ", absl::FormatDuration(time)));
  disk_refuses_until_ = std::max(disk_refuses_until_, cluster_->world->now() + time);
  cluster_->disk->refuses = true;
  cluster_->world->AfterOutside(time, [this] {
    if (cluster_->world->now() >= disk_refuses_until_) cluster_->disk->refuses = false;
  });
}

void Faults::StallDisk(absl::Duration time) {
  Say(absl::StrCat("the disk stands still for ", absl::FormatDuration(time)));
  cluster_->disk->stalls_until = std::max(cluster_->disk->stalls_until, cluster_->world->now() + time);
}

void Faults::Heal() {
  healed_ = true;
  cluster_->on_commit = nullptr;
  cluster_->on_stop = nullptr;
  cluster_->disk->refuses = false;
  cluster_->disk->refuses_once.clear();
  cluster_->EndDrains();
  cluster_->disk->stalls_until = absl::InfinitePast();
  cluster_->cut_off.clear();
  while (!blocked_.empty()) Open(blocked_.back().id);
  for (int slot = 0; slot < cluster_->settings.workers; ++slot) {
    if (SimWorker* worker = cluster_->worker(slot)) {
      worker->HangUntil(absl::InfinitePast());
      worker->NoPeersUntil(absl::InfinitePast());
    }
  }
}

void Faults::WakeAll(Random& random) {
  while (!paused_.empty()) {
    const ProcessId process = paused_.back();
    const bool old_chief = std::any_of(cluster_->chiefs.begin(), cluster_->chiefs.end(),
                                       [process](const auto& chief) { return chief->process() == process; });
    if (random.Chance(300) && process != cluster_->chief()->process() && old_chief) cluster_->KillProcess(process);
    Wake(process);
  }
}

}  // namespace lockstep::simulation
