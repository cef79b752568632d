#include "common/math/power.h"

#include "common/math/power_formula.h"

namespace lockstep {

double Pow(double x, double y) { return PowOf(x, y); }

}  // namespace lockstep
