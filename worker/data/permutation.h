// A keyed pseudorandom permutation of [0, n): computes element i of an epoch's shuffled order without storing the
// order. It is an alternating Feistel network over Z_a x Z_b with a * b just above n (Black and Rogaway, "Ciphers with
// arbitrary finite domains", 2002) whose round function is the counter-based generator of common/random. A value
// outside [0, n) is encrypted again (cycle walking), which affects about one value in sqrt(n).
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DATA_PERMUTATION_H_
#define LOCKSTEP_WORKER_DATA_PERMUTATION_H_

#include <cstdint>

#include "common/random/random.h"
#include "common/status/check.h"

namespace lockstep::worker {

class Permutation {
 public:
  // REQUIRES: 1 <= n < 2^62.
  Permutation(uint64_t seed, uint64_t epoch, int64_t n)
      : random_(RandomStream::For(seed, StreamOfName("lockstep.sample_order"), epoch, 0, 0)),
        n_(static_cast<uint64_t>(n)) {
    LS_CHECK(n >= 1 && n < (int64_t{1} << 62), "a permutation is of a finite, not empty set");
    a_ = CeilSqrt(n_);
    b_ = (n_ + a_ - 1) / a_;
  }

  // Element i of the shuffled order. REQUIRES: 0 <= i < n.
  int64_t At(int64_t i) const {
    uint64_t value = static_cast<uint64_t>(i);
    do {
      value = Encrypt(value);
    } while (value >= n_);
    return static_cast<int64_t>(value);
  }

 private:
  static constexpr int kRounds = 8;

  static uint64_t CeilSqrt(uint64_t n) {
    uint64_t low = 1;
    uint64_t high = uint64_t{1} << 31;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (middle * middle >= n) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  uint64_t Round(int round, uint64_t half) const {
    const auto bits = random_.Block((static_cast<uint64_t>(round) << 56) | half);
    return (static_cast<uint64_t>(bits[0]) << 32) | bits[1];
  }

  // A bijection of [0, a * b).
  uint64_t Encrypt(uint64_t value) const {
    uint64_t left = value / b_;
    uint64_t right = value % b_;
    for (int round = 0; round < kRounds; round += 2) {
      left = (left + Round(round, right) % a_) % a_;
      right = (right + Round(round + 1, left) % b_) % b_;
    }
    return left * b_ + right;
  }

  RandomStream random_;
  uint64_t n_;
  uint64_t a_ = 1;
  uint64_t b_ = 1;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_PERMUTATION_H_
