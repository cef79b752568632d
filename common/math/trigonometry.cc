#include "common/math/trigonometry.h"

#include "common/math/trigonometry_formula.h"

namespace lockstep {

double Sin(double x) { return SinOf(x); }
double Cos(double x) { return CosOf(x); }

}  // namespace lockstep
