// Random graphs of one op (with the ops that it needs in front), over random shapes and attributes, to compare devices.
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

// Random numbers of one case, from a seed that is printed if it fails.
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
  // Number of terms in the longest sum behind an element of an output, which scales the allowed error.
  int64_t terms = 1;
  // Whether the kernel computes only sums of products: the error bound then follows from the same sums of absolute
  // values.
  bool sums_of_products = false;
  // An output whose largest element bounds the terms that cancel inside the others; empty: each output's own largest
  // element does.
  std::string scale;
};

// A random case of `op`. Aborts if the op has no case.
DeviceCase RandomCase(OpType op, Dice& dice);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_DEVICE_CASES_H_
