// Precompiled headers for tests of the coordinator's parts (see precompiled_headers.h).
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_CHIEF_CORE_TEST_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_CHIEF_CORE_TEST_PRECOMPILED_HEADERS_H_

#include "bazel/test_headers.h"
#include "chief/core/actions.h"

#endif  // LOCKSTEP_CHIEF_CORE_TEST_PRECOMPILED_HEADERS_H_
