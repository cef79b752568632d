// Random numbers as a function of a seed, for mutations.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_FUZZ_DICE_H_
#define LOCKSTEP_TESTS_FUZZ_DICE_H_

#include <cstddef>
#include <cstdint>
#include <random>

namespace lockstep::fuzz {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  // In [0, limit). REQUIRES: limit > 0.
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }
  // True with probability 1/`count`.
  bool Once(size_t count) { return Below(count) == 0; }

  // A number near the limit of some type, or a small one.
  uint64_t EdgeNumber() {
    const uint64_t power = uint64_t{1} << Below(64);
    switch (Below(4)) {
      case 0:
        return power;
      case 1:
        return power - 1;
      case 2:
        return ~power;
      default:
        return Below(17);
    }
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_DICE_H_
