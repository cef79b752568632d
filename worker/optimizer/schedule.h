// Numbers that an update depends on, in float64 without libm: every machine and library version makes the same bits.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_OPTIMIZER_SCHEDULE_H_
#define LOCKSTEP_WORKER_OPTIMIZER_SCHEDULE_H_

#include <cstdint>

namespace lockstep::worker {

// base^exponent by repeated squaring; relative error below exponent's number of bits times 2^-51. REQUIRES:
// exponent >= 0.
double IntegerPower(double base, int64_t exponent);

// cos(pi * x) for x in [0, 1], exact at 0, 1/2 and 1; absolute error below 2^-51.
double CosPi(double x);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_OPTIMIZER_SCHEDULE_H_
