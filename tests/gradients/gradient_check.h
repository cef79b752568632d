// Gradients against central differences, in float64.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_GRADIENTS_GRADIENT_CHECK_H_
#define LOCKSTEP_TESTS_GRADIENTS_GRADIENT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/ops/ir.h"
#include "common/random/random.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Random numbers of one case, replayed by its seed.
class CaseNumbers {
 public:
  explicit CaseNumbers(uint64_t seed) : stream_(RandomStream::For(seed, StreamOfName("gradients"))) {}
  // Uniform in [low, high].
  int64_t Int(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(stream_.At(next_++) % static_cast<uint64_t>(high - low + 1));
  }
  bool Coin() { return Int(0, 1) == 1; }
  // Uniform in [-1, 1).
  double Unit() { return SymmetricUnit(stream_.At(next_++)); }
  // F64 elements in [-1, 1).
  Tensor Uniform(Shape shape);
  // F64 elements of which no two are closer than 1e-3 and none is closer to zero: away from kinks and ties.
  Tensor Distinct(Shape shape);

 private:
  RandomStream stream_;
  uint64_t next_ = 0;
};

// An op, or a few, between F64 inputs that are differentiated and outputs.
struct GradientCase {
  // Inputs, constants and nodes; no shapes inferred yet.
  Graph graph;
  std::vector<Tensor> inputs;        // values of the graph's inputs, in order
  std::vector<std::string> targets;  // inputs whose gradients are checked
  std::vector<std::string> outputs;  // all of them count, with random weights
};

// Empty when every gradient of the case agrees with central differences; else what differs. `seed` weighs the outputs.
std::string CheckGradients(GradientCase test, uint64_t seed);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_GRADIENTS_GRADIENT_CHECK_H_
