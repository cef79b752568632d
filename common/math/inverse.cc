#include "common/math/inverse.h"

#include "common/math/inverse_formula.h"

namespace lockstep {

double Tan(double x) { return TanOf(x); }
double Asin(double x) { return AsinOf(x); }
double Acos(double x) { return AcosOf(x); }
double Atan(double x) { return AtanOf(x); }

}  // namespace lockstep
