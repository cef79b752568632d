// Checks gradients against central differences, in float64.
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

// The random numbers of one case, a function of its seed.
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
  // F64 elements whose distances from each other and from zero are at least 1e-3: away from kinks and ties.
  Tensor Distinct(Shape shape);

 private:
  RandomStream stream_;
  uint64_t next_ = 0;
};

// A graph of one or a few ops between differentiable F64 inputs and outputs.
struct GradientCase {
  // Inputs, constants and nodes; no shapes inferred yet.
  Graph graph;
  std::vector<Tensor> inputs;        // values of the graph's inputs, in order
  std::vector<std::string> targets;  // inputs whose gradients are checked
  std::vector<std::string> outputs;  // the checked function is their randomly weighted sum
};

// Empty if every gradient of the case agrees with central differences; otherwise says what differs. `seed`: of the
// weights of the outputs.
std::string CheckGradients(GradientCase test, uint64_t seed);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_GRADIENTS_GRADIENT_CHECK_H_
