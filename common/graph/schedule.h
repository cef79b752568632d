// The learning rate of a step, and the functions that it is made of: in float64 without libm, so that every machine and
// library version computes the same bits.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_GRAPH_SCHEDULE_H_
#define LOCKSTEP_COMMON_GRAPH_SCHEDULE_H_

#include <cstdint>

#include "common/graph/metagraph.h"

namespace lockstep {

// Whether the rate depends on the step at which the job ends.
bool EndsWithJob(ScheduleKind kind);

// The learning rate of the update from `step` to `step` + 1, by the formulas of ScheduleRule. `rate_cuts` is that of
// the EvaluationLedger; only kPlateau uses it.
double LearningRate(const ScheduleRule& schedule, int64_t step, int64_t rate_cuts);

// base^exponent by repeated squaring; relative error below the bit length of `exponent` times 2^-51. REQUIRES: exponent
// >= 0.
double IntegerPower(double base, int64_t exponent);

// cos(pi * x) for x in [0, 1], exact at 0, 1/2 and 1; absolute error below 2^-51.
double CosPi(double x);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_SCHEDULE_H_
