// What sources about the coordinator include, for the compiler to read once, as bazel/headers.h: events and actions
// cost 1 s in each.
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_CHIEF_CORE_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_CHIEF_CORE_PRECOMPILED_HEADERS_H_

#include "bazel/headers.h"
#include "chief/core/actions.h"

#endif  // LOCKSTEP_CHIEF_CORE_PRECOMPILED_HEADERS_H_
