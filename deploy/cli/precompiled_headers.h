// Precompiled headers for sources of the command line (see bazel/headers.h); compiling CLI11 costs 4 s per source.
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_DEPLOY_CLI_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_DEPLOY_CLI_PRECOMPILED_HEADERS_H_

#include <CLI/CLI.hpp>

#include "bazel/headers.h"

#endif  // LOCKSTEP_DEPLOY_CLI_PRECOMPILED_HEADERS_H_
