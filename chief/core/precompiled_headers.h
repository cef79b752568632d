// Precompiled headers for sources of the coordinator (see bazel/headers.h); compiling events and actions costs 1 s per
// source.
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_CHIEF_CORE_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_CHIEF_CORE_PRECOMPILED_HEADERS_H_

#include "bazel/headers.h"
#include "chief/core/actions.h"

#endif  // LOCKSTEP_CHIEF_CORE_PRECOMPILED_HEADERS_H_
