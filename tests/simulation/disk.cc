#include "tests/simulation/disk.h"

#include <algorithm>
#include <utility>

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(100);

}  // namespace

void Disk::Later(World& world, ProcessId process, std::function<void()> action) const {
  Random& random = world.random();
  const absl::Duration delay =
      random.Between(absl::Microseconds(200), random.Chance(50) ? absl::Milliseconds(400) : absl::Milliseconds(8));
  OnceItMoves(world, process,
              [&world, process, delay, action = std::move(action)] { world.After(process, delay, action); });
}

void Disk::OnceItMoves(World& world, ProcessId process, std::function<void()> action) const {
  if (world.now() >= stalls_until) return action();
  world.After(process, std::min(stalls_until - world.now(), kLookEvery),
              [this, &world, process, action = std::move(action)] { OnceItMoves(world, process, action); });
}

}  // namespace lockstep::simulation
