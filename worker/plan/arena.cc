#include "worker/plan/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::worker {
namespace {

int64_t RoundUp(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

int64_t LargestSum(absl::Span<const ArenaRequest> requests, int64_t alignment) {
  std::map<int, int64_t> change;
  for (const ArenaRequest& request : requests) {
    change[request.first] += RoundUp(request.bytes, alignment);
    change[request.last + 1] -= RoundUp(request.bytes, alignment);
  }
  int64_t alive = 0;
  int64_t largest = 0;
  for (const auto& [step, bytes] : change) {
    alive += bytes;
    largest = std::max(largest, alive);
  }
  return largest;
}

}  // namespace

ArenaLayout PlaceInArena(absl::Span<const ArenaRequest> requests, int64_t alignment) {
  ArenaLayout layout;
  layout.offsets.assign(requests.size(), 0);
  layout.lower_bound = LargestSum(requests, alignment);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  std::vector<size_t> placed;  // by ascending offset
  for (const size_t index : order) {
    const ArenaRequest& request = requests[index];
    const int64_t size = RoundUp(request.bytes, alignment);
    int64_t offset = 0;
    for (const size_t other : placed) {
      const ArenaRequest& taken = requests[other];
      if (taken.last < request.first || request.last < taken.first) continue;
      if (layout.offsets[other] >= offset + size) break;
      offset = std::max(offset, layout.offsets[other] + RoundUp(taken.bytes, alignment));
    }
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + size);
    const auto at =
        std::find_if(placed.begin(), placed.end(), [&](size_t other) { return layout.offsets[other] > offset; });
    placed.insert(at, index);
  }
  return layout;
}

}  // namespace lockstep::worker
