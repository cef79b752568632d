// Headers that most sources of own kernels include, precompiled once per instruction set, like bazel/headers.h.
//
// Threading: immutable (nothing is declared here).
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_PRECOMPILED_HEADERS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "common/math/math.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/own_loops.h"
#include "worker/kernels/cpu/parallel.h"

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_PRECOMPILED_HEADERS_H_
