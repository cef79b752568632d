#include "tests/simulation/network.h"

#include <algorithm>

namespace lockstep::simulation {

ConnectionId Network::Open(ProcessId a, ProcessId b, std::function<void()> on_reset_a,
                           std::function<void()> on_reset_b) {
  const ConnectionId id = static_cast<ConnectionId>(connections_.size());
  Connection connection;
  connection.sides[0].process = a;
  connection.sides[0].on_reset = std::move(on_reset_a);
  connection.sides[1].process = b;
  connection.sides[1].on_reset = std::move(on_reset_b);
  connections_.push_back(std::move(connection));
  of_process_[a].insert(id);
  of_process_[b].insert(id);
  return id;
}

absl::Duration Network::Delay() {
  Random& random = world_->random();
  return random.Between(delays_.low, random.Chance(delays_.rare_per_mille) ? delays_.rare : delays_.high);
}

void Network::Send(ConnectionId id, ProcessId from, std::function<void()> deliver) {
  Connection& connection = connections_[id];
  if (!connection.open) return;
  const int to = connection.sides[0].process == from ? 1 : 0;
  Side& side = connection.sides[to];
  // A microsecond apart at least, so that order on a connection never depends on ties.
  const absl::Time when = std::max(world_->now() + Delay(), side.last_arrival + absl::Microseconds(1));
  side.last_arrival = when;
  Arrive(id, to, when, [this, id, to, when, deliver = std::move(deliver)] {
    if (when <= connections_[id].sides[to].cut) deliver();
  });
}

void Network::Arrive(ConnectionId id, int side, absl::Time when, std::function<void()> deliver) {
  const Connection& connection = connections_[id];
  Carry(world_->host(connection.sides[1 - side].process), connection.sides[side].process, when - world_->now(),
        Channel::kSession, std::move(deliver));
}

void Network::Carry(HostId from, ProcessId to, absl::Duration delay, Channel channel, std::function<void()> action) {
  world_->AfterOutside(delay, [this, from, to, channel, action = std::move(action)]() mutable {
    const Way way = {from, world_->host(to)};
    if (blocked(way.first, way.second, Only(channel))) {
      held_[way].push_back({to, channel, std::move(action)});
    } else {
      world_->Enter(to, std::move(action));
    }
  });
}

void Network::Cut(ConnectionId id, int side_index, bool tell) {
  Side& side = connections_[id].sides[side_index];
  const absl::Time when = world_->now() + Delay();
  side.cut = when;
  if (!tell) return;
  Arrive(id, side_index, when, [this, id, side_index] {
    Side& told = connections_[id].sides[side_index];
    if (told.on_reset) told.on_reset();
  });
}

void Network::Break(ConnectionId id) {
  Connection& connection = connections_[id];
  if (!connection.open) return;
  connection.open = false;
  for (int side : {0, 1}) {
    Cut(id, side, true);
    of_process_[connection.sides[side].process].erase(id);
  }
}

void Network::Close(ConnectionId id, ProcessId by) {
  Connection& connection = connections_[id];
  if (!connection.open) return;
  connection.open = false;
  for (int side : {0, 1}) {
    const bool peer = connection.sides[side].process != by;
    if (peer) {
      // What was sent before the close arrives first, as on a stream that ends in order.
      Side& told = connection.sides[side];
      const absl::Time when = std::max(world_->now() + Delay(), told.last_arrival + absl::Microseconds(1));
      Arrive(id, side, when, [this, id, side] {
        Side& receiver = connections_[id].sides[side];
        if (receiver.on_reset) receiver.on_reset();
      });
    } else {
      connection.sides[side].cut = absl::InfinitePast();
    }
    of_process_[connection.sides[side].process].erase(id);
  }
}

void Network::TimeOut(ConnectionId id, ProcessId by) {
  Connection& connection = connections_[id];
  if (!connection.open) return;
  connection.open = false;
  for (int side : {0, 1}) {
    const ProcessId process = connection.sides[side].process;
    of_process_[process].erase(id);
    if (process != by) {
      Cut(id, side, true);
      continue;
    }
    connection.sides[side].cut = world_->now();
    world_->After(process, absl::ZeroDuration(), [this, id, side] {
      Side& told = connections_[id].sides[side];
      if (told.on_reset) told.on_reset();
    });
  }
}

void Network::BreakAllOf(ProcessId process) {
  const std::set<ConnectionId> own = of_process_[process];
  for (ConnectionId id : own) Break(id);
}

std::vector<ConnectionId> Network::Live() const {
  std::vector<ConnectionId> live;
  for (const auto& [process, ids] : of_process_) {
    for (ConnectionId id : ids) {
      if (connections_[id].sides[0].process == process) live.push_back(id);
    }
  }
  return live;
}

std::vector<ConnectionId> Network::LiveOf(ProcessId process) const {
  const auto found = of_process_.find(process);
  if (found == of_process_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

bool Network::blocked(HostId from, HostId to, uint32_t channels) const {
  if (blocked_.empty()) return false;
  const auto found = blocked_.find({from, to});
  if (found == blocked_.end()) return false;
  for (size_t channel = 0; channel < kChannels; ++channel) {
    if ((channels >> channel & 1u) != 0 && found->second[channel] > 0) return true;
  }
  return false;
}

void Network::Block(HostId from, HostId to, uint32_t channels) {
  std::array<int, kChannels>& counts = blocked_[{from, to}];
  for (size_t channel = 0; channel < kChannels; ++channel) counts[channel] += channels >> channel & 1u;
}

void Network::Unblock(HostId from, HostId to, uint32_t channels) {
  const auto found = blocked_.find({from, to});
  if (found == blocked_.end()) return;
  int left = 0;
  for (size_t channel = 0; channel < kChannels; ++channel) {
    int& count = found->second[channel];
    if ((channels >> channel & 1u) != 0 && count > 0) --count;
    left += count;
  }
  if (left == 0) blocked_.erase(found);
  std::vector<Held> waiting = std::move(held_[{from, to}]);
  held_[{from, to}].clear();
  for (Held& held : waiting) {
    if (blocked(from, to, Only(held.channel))) {
      held_[{from, to}].push_back(std::move(held));
    } else {
      world_->After(held.to, absl::ZeroDuration(), std::move(held.action));
    }
  }
}

}  // namespace lockstep::simulation
