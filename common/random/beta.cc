#include "common/random/beta.h"

#include <array>

#include "common/math/math.h"
#include "common/math/trigonometry.h"

namespace lockstep {
namespace {

// Tries of which half succeed or more: one number in 2^64 is left without.
constexpr uint64_t kTries = 64;
constexpr double kTwoPi = 0x1.921fb54442d18p+2;

// The middle of one of 2^53 equal parts of (0, 1).
double Uniform(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

double Johnk(double alpha, const RandomStream& draws, uint64_t first_block) {
  for (uint64_t attempt = 0; attempt < kTries; ++attempt) {
    const std::array<uint32_t, 4> bits = draws.Block(first_block + attempt);
    const double x = Log(Uniform(bits[0], bits[1])) / alpha, y = Log(Uniform(bits[2], bits[3])) / alpha;
    if (Exp(x) + Exp(y) <= 1) return Sigmoid(x - y);
  }
  return 0.5;
}

double Ulrich(double alpha, const RandomStream& draws, uint64_t block) {
  const std::array<uint32_t, 4> bits = draws.Block(block);
  const double distance = SquareRoot(-Expm1OfNegative(Log(Uniform(bits[0], bits[1])) / (alpha - 0.5)));
  return 0.5 + 0.5 * distance * Cos(kTwoPi * Uniform(bits[2], bits[3]));
}

}  // namespace

double SymmetricBeta(double alpha, const RandomStream& draws, uint64_t first_block) {
  return alpha <= 1 ? Johnk(alpha, draws, first_block) : Ulrich(alpha, draws, first_block);
}

}  // namespace lockstep
