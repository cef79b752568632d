// Headers that most tests include, precompiled like headers.h.
//
// Threading: immutable (nothing is declared here).
#ifndef LOCKSTEP_BAZEL_TEST_HEADERS_H_
#define LOCKSTEP_BAZEL_TEST_HEADERS_H_

#include <catch2/catch.hpp>

#include "bazel/headers.h"

#endif  // LOCKSTEP_BAZEL_TEST_HEADERS_H_
