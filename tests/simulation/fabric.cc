#include "tests/simulation/fabric.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::simulation {

void Fabric::Connect(GroupKey key, int rank, int size, ProcessId process, ConnectDone done) {
  Group& group = groups_[key];
  if (group.members.empty()) group.members.resize(size);
  if (static_cast<int>(group.members.size()) != size || group.members[rank].process >= 0) {
    on_mismatch_(absl::StrCat("generation ", key.term, ".", key.counter, ": rank ", rank, " of ", size,
                              " joins a group of ", group.members.size(), " where that rank is ",
                              group.members[rank % group.members.size()].process >= 0 ? "taken" : "free"));
    return;
  }
  Member& member = group.members[rank];
  member.process = process;
  member.since = world_->now();
  member.connect_done = std::move(done);
  if (group.broken) {
    Fail(group, rank, "the group is already broken");
    return;
  }
  for (const Member& other : group.members) {
    if (other.process < 0) return;
    if (!world_->alive(other.process)) return BreakGroup(key, -1, "a peer is dead");
  }
  for (size_t i = 0; i < group.members.size(); ++i) Deliver(key, static_cast<int>(i), {});
}

void Fabric::Exchange(GroupKey key, int rank, const std::string& what, Contribution mine, ExchangeDone done) {
  Group& group = groups_[key];
  Member& member = group.members[rank];
  ++member.call;
  member.since = world_->now();
  member.entered = true;
  member.what = what;
  member.mine = std::move(mine);
  member.exchange_done = std::move(done);
  if (group.broken) {
    Fail(group, rank, "a peer is gone");
    return;
  }
  MaybeComplete(key);
}

void Fabric::MaybeComplete(GroupKey key) {
  Group& group = groups_[key];
  std::vector<Contribution> all;
  for (const Member& member : group.members) {
    if (!member.entered) return;
  }
  for (Member& member : group.members) {
    if (member.what != group.members[0].what) {
      on_mismatch_(absl::StrCat("generation ", key.term, ".", key.counter, ": rank 0 is in '", group.members[0].what,
                                "' while another rank is in '", member.what, "'"));
      return;
    }
    all.push_back(std::move(member.mine));
    member.entered = false;
  }
  const auto gathered = std::make_shared<const std::vector<Contribution>>(std::move(all));
  for (size_t i = 0; i < group.members.size(); ++i) Deliver(key, static_cast<int>(i), gathered);
}

void Fabric::Deliver(GroupKey key, int rank, const Gathered& gathered) {
  const Group& group = groups_[key];
  const Member& member = group.members[rank];
  const HostId me = world_->host(member.process);
  HostId from = me;
  for (const Member& other : group.members) {
    if (network_->blocked(world_->host(other.process), me, Only(Channel::kPeers))) from = world_->host(other.process);
  }
  const uint64_t call = member.call;
  const absl::Duration delay = world_->random().Between(absl::Microseconds(100), absl::Milliseconds(3));
  const absl::Time when = world_->now() + delay;
  auto deliver = [this, key, rank, call, when, gathered] {
    Member& receiver = groups_[key].members[rank];
    if (receiver.aborted || receiver.call != call || when > receiver.cut) return;
    if (receiver.connect_done) {
      std::exchange(receiver.connect_done, nullptr)(absl::OkStatus());
    } else if (receiver.exchange_done) {
      std::exchange(receiver.exchange_done, nullptr)(gathered);
    }
  };
  network_->Carry(from, member.process, delay, Channel::kPeers, std::move(deliver));
}

void Fabric::Fail(Group& group, int rank, absl::string_view why) {
  Member& member = group.members[rank];
  const absl::Status status = absl::AbortedError(absl::StrCat("collective: ", why));
  const uint64_t call = member.call;
  const absl::Duration delay = world_->random().Between(absl::Microseconds(50), absl::Milliseconds(8));
  if (member.cut == absl::InfiniteFuture()) member.cut = world_->now() + delay;
  world_->After(member.process, delay, [&member, status, call] {
    if (member.call != call) return;
    if (member.connect_done) {
      std::exchange(member.connect_done, nullptr)(status);
    } else if (member.exchange_done) {
      std::exchange(member.exchange_done, nullptr)(status);
    }
  });
}

void Fabric::BreakGroup(GroupKey key, int except, absl::string_view why) {
  Group& group = groups_[key];
  if (group.broken) return;
  group.broken = true;
  for (size_t i = 0; i < group.members.size(); ++i) {
    const Member& member = group.members[i];
    if (static_cast<int>(i) == except || member.process < 0 || !world_->alive(member.process)) continue;
    Fail(group, static_cast<int>(i), why);
  }
}

void Fabric::Abort(GroupKey key, int rank) {
  const auto found = groups_.find(key);
  if (found == groups_.end() || rank >= static_cast<int>(found->second.members.size())) return;
  Member& member = found->second.members[rank];
  if (member.process < 0 || member.aborted) return;
  member.aborted = true;
  member.cut = world_->now();
  const absl::Status status = absl::AbortedError("collective: aborted here");
  if (ConnectDone done = std::exchange(member.connect_done, nullptr)) {
    world_->After(member.process, absl::Microseconds(200), [done, status] { done(status); });
  }
  if (ExchangeDone done = std::exchange(member.exchange_done, nullptr)) {
    world_->After(member.process, absl::Microseconds(200), [done, status] { done(status); });
  }
  BreakGroup(key, rank, "a peer aborted");
}

void Fabric::ProcessDied(ProcessId process) {
  for (auto& [key, group] : groups_) {
    if (group.broken) continue;
    for (const Member& member : group.members) {
      if (member.process == process) BreakGroup(key, -1, "connection reset by a peer");
    }
  }
}

void Fabric::Break(GroupKey key) { BreakGroup(key, -1, "connection reset"); }

void Fabric::Watch(FabricLimits limits) {
  limits_ = limits;
  world_->AfterOutside(absl::Seconds(1), [this] { Look(); });
}

void Fabric::Look() {
  for (auto& [key, group] : groups_) {
    for (size_t rank = 0; !group.broken && rank < group.members.size(); ++rank) {
      GiveUpLate(key, group, static_cast<int>(rank));
    }
  }
  world_->AfterOutside(absl::Seconds(1), [this] { Look(); });
}

void Fabric::GiveUpLate(GroupKey key, Group& group, int rank) {
  Member& member = group.members[rank];
  if (member.process < 0 || !world_->alive(member.process) || world_->paused(member.process)) return;
  const absl::Duration waited = world_->now() - member.since;
  const bool connects = member.connect_done != nullptr && waited > limits_.form;
  const bool exchanges = member.exchange_done != nullptr && waited > limits_.answer;
  if (!connects && !exchanges) return;
  const int suspect = Unreachable(group, rank);
  if (suspect < 0 && exchanges) return;
  member.suspect = suspect;
  BreakGroup(key, -1, connects ? "a peer did not come" : "a peer does not answer");
}

int Fabric::Unreachable(const Group& group, int rank) const {
  const HostId here = world_->host(group.members[rank].process);
  for (size_t other = 0; other < group.members.size(); ++other) {
    const ProcessId process = group.members[other].process;
    if (static_cast<int>(other) == rank) continue;
    if (process < 0 || !world_->alive(process) || world_->paused(process)) return static_cast<int>(other);
    if (network_->apart(here, world_->host(process), Only(Channel::kPeers))) return static_cast<int>(other);
  }
  return -1;
}

int Fabric::SuspectOf(GroupKey key, int rank) const {
  const auto found = groups_.find(key);
  if (found == groups_.end() || rank >= static_cast<int>(found->second.members.size())) return -1;
  return found->second.members[rank].suspect;
}

std::vector<GroupKey> Fabric::Live() const {
  std::vector<GroupKey> live;
  for (const auto& [key, group] : groups_) {
    if (!group.broken) live.push_back(key);
  }
  return live;
}

std::vector<ProcessId> Fabric::ProcessesOf(GroupKey key) const {
  std::vector<ProcessId> processes;
  const auto found = groups_.find(key);
  if (found == groups_.end()) return processes;
  for (const Member& member : found->second.members) {
    if (member.process >= 0) processes.push_back(member.process);
  }
  return processes;
}

}  // namespace lockstep::simulation
