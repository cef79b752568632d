// Precompiled headers for sources of the simulation (see bazel/headers.h); compiling both cores costs 2 s per source.
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_TESTS_SIMULATION_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_TESTS_SIMULATION_PRECOMPILED_HEADERS_H_

#include "bazel/headers.h"
#include "chief/core/coordinator.h"
#include "worker/session/session_core.h"

#endif  // LOCKSTEP_TESTS_SIMULATION_PRECOMPILED_HEADERS_H_
