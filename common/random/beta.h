// Random numbers of the Beta distribution with two equal parameters, the same bits everywhere: no libm.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_RANDOM_BETA_H_
#define LOCKSTEP_COMMON_RANDOM_BETA_H_

#include <cstdint>

#include "common/random/random.h"

namespace lockstep {

// In [0, 1], of density proportional to (x * (1 - x))^(alpha - 1). Reads blocks of `draws` from `first_block` on, 64 at
// most. REQUIRES: 0.001 <= alpha <= 1e6.
//
//   alpha <= 1   Jöhnk, "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen", 1964: U^(1/alpha) and
//                V^(1/alpha) are drawn until their sum is at most 1 (half of them and more are), computed with
//                logarithms, since both may be too small for a number
//   above        Ulrich, "Computer generation of distributions on the m-sphere", 1984: half of 1 + the first
//                coordinate of a point of a disc whose density falls with the distance to its middle
double SymmetricBeta(double alpha, const RandomStream& draws, uint64_t first_block);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RANDOM_BETA_H_
