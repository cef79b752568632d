// Random graphs of one op (and of what it needs in front), over random shapes and attributes, for comparing devices.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_CONTRACTS_DEVICE_CASES_H_
#define LOCKSTEP_TESTS_CONTRACTS_DEVICE_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/ops/ir.h"
#include "common/random/random.h"

namespace lockstep {

// Numbers for one case, from a seed that is printed when it fails.
class Dice {
 public:
  explicit Dice(uint64_t seed) : stream_(RandomStream::For(seed, 1)) {}
  // Uniform in [low, high].
  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(stream_.At(next_++) % static_cast<uint64_t>(high - low + 1));
  }
  bool Flip() { return Roll(0, 1) == 1; }

 private:
  RandomStream stream_;
  uint64_t next_ = 0;
};

struct DeviceCase {
  // Every value that a node computes is an output.
  Graph graph;
  // Number of terms in the longest sum that one element of an output comes from: scales the error that is allowed.
  int64_t terms = 1;
  // True where a kernel computes sums of products alone: the error is then bounded by that of the absolute values.
  bool sums_of_products = false;
  // An output whose largest element bounds what cancels inside the others; empty: their own largest one does.
  std::string scale;
};

// REQUIRES: every op has a case; aborts for one that has not.
DeviceCase RandomCase(OpType op, Dice& dice);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_DEVICE_CASES_H_
