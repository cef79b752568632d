// The only source of randomness of a simulated schedule: everything random in a run follows from its seed.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_RANDOM_H_
#define LOCKSTEP_TESTS_SIMULATION_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::simulation {

// One step of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Replaces chance when all of its outcomes are to be tried (explore.h): each draw gives the lowest of its values,
// except for the listed ones, which give the highest.
struct Script {
  std::vector<uint64_t> highest;  // numbers of draws, in order
  uint64_t draws = 0;             // draws so far
  size_t next = 0;

  bool IsHighest() {
    const bool named = next < highest.size() && highest[next] == draws;
    if (named) ++next;
    ++draws;
    return named;
  }
};

class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix(seed)) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ull;
    return Mix(state_);
  }
  // A value in [0, bound). REQUIRES: bound > 0. The bias of the remainder does not matter here.
  uint64_t Below(uint64_t bound) {
    if (script_ != nullptr) return bound > 1 && script_->IsHighest() ? bound - 1 : 0;
    return Next() % bound;
  }
  // A value in [low, high], both included.
  int64_t Between(int64_t low, int64_t high) { return low + static_cast<int64_t>(Below(high - low + 1)); }
  // True in `per_mille` of 1,000 cases.
  bool Chance(int per_mille) {
    if (script_ != nullptr) return per_mille >= 1000 || (per_mille > 0 && script_->IsHighest());
    return static_cast<int>(Below(1000)) < per_mille;
  }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    const int64_t span = absl::ToInt64Microseconds(high - low);
    return low + absl::Microseconds(span <= 0 ? 0 : static_cast<int64_t>(Below(span + 1)));
  }

  // Draws follow `script` from now on; it outlives this.
  void Follow(Script* script) { script_ = script; }

 private:
  uint64_t state_;
  Script* script_ = nullptr;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_RANDOM_H_
