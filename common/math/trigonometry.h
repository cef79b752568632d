// Sine and cosine, the same bits everywhere, for every finite angle: large ones are reduced with as many digits of 2 /
// pi as needed.
//
// Error below 4 units of the last place. NaN for an infinite angle.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_TRIGONOMETRY_H_
#define LOCKSTEP_COMMON_MATH_TRIGONOMETRY_H_

namespace lockstep {

// Angles in radians.
double Sin(double x);
double Cos(double x);
inline float Sin(float x) { return static_cast<float>(Sin(static_cast<double>(x))); }
inline float Cos(float x) { return static_cast<float>(Cos(static_cast<double>(x))); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_TRIGONOMETRY_H_
