// The tangent and the inverse circular functions (inverse_formula.h), compiled out of line. Code that is compiled once
// per instruction set calls these: it must not include the formulas, whose tables are shared symbols.
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
