// What sources of the simulation include, for the compiler to read once, as bazel/headers.h: both cores cost 2 s in
// each.
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_TESTS_SIMULATION_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_TESTS_SIMULATION_PRECOMPILED_HEADERS_H_

#include "bazel/headers.h"
#include "chief/core/coordinator.h"
#include "worker/session/session_core.h"

#endif  // LOCKSTEP_TESTS_SIMULATION_PRECOMPILED_HEADERS_H_
