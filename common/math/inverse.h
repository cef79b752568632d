// The tangent and the inverse circular functions (inverse_formula.h), for code that is compiled once per instruction
// set: their tables are shared symbols, which such code must not hold.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_INVERSE_H_
#define LOCKSTEP_COMMON_MATH_INVERSE_H_

namespace lockstep {

// Angles in radians; NaN outside of a function's domain.
double Tan(double x);
double Asin(double x);
double Acos(double x);
double Atan(double x);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_INVERSE_H_
