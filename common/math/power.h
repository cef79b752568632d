// Powers, the same bits everywhere, with the special cases of C's pow.
//
// Error below 4 units of the last place. Results and bases that would be denormal are taken as zero.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_POWER_H_
#define LOCKSTEP_COMMON_MATH_POWER_H_

namespace lockstep {

// x to the power of y. 1 for y = 0 and for x = 1, whatever the other is; NaN for x < 0 and a y that is not whole.
double Pow(double x, double y);
inline float Pow(float x, float y) { return static_cast<float>(Pow(static_cast<double>(x), static_cast<double>(y))); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_POWER_H_
