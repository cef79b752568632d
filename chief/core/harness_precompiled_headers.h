// Precompiled headers for tests of the whole coordinator; compiling its harness costs 2 s per test.
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_CHIEF_CORE_HARNESS_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_CHIEF_CORE_HARNESS_PRECOMPILED_HEADERS_H_

#include "bazel/test_headers.h"
#include "chief/core/chief_harness.h"

#endif  // LOCKSTEP_CHIEF_CORE_HARNESS_PRECOMPILED_HEADERS_H_
