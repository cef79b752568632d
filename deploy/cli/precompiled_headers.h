// What the command line's sources include, for the compiler to read once, as bazel/headers.h: CLI11 takes it 4 s.
//
// Threading: nothing is declared here.
#ifndef LOCKSTEP_DEPLOY_CLI_PRECOMPILED_HEADERS_H_
#define LOCKSTEP_DEPLOY_CLI_PRECOMPILED_HEADERS_H_

#include <CLI/CLI.hpp>

#include "bazel/headers.h"

#endif  // LOCKSTEP_DEPLOY_CLI_PRECOMPILED_HEADERS_H_
