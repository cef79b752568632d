// A small job file, for tests of reading job files.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_JOB_JOB_TEST_UTIL_H_
#define LOCKSTEP_COMMON_JOB_JOB_TEST_UTIL_H_

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/job/job.h"

namespace lockstep {

inline constexpr char kJob[] =
    "name: small\n"
    "model: {builtin: {name: lenet}}\n"
    "data:\n"
    "  train: {inputs: x.idx, labels: y.idx}\n"
    "  eval: {inputs: tx.idx, labels: ty.idx}\n"
    "train:\n"
    "  duration: 10ep\n"
    "  global_batch_size: 256\n"
    "  optimizer: {lr: 0.1}\n";

// kJob with one piece of it replaced.
inline std::string With(const std::string& from, const std::string& to) {
  REQUIRE(absl::StrContains(kJob, from));
  return absl::StrReplaceAll(kJob, {{from, to}});
}

// The job that a valid text describes.
inline JobSpec Good(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto spec = ParseJob(text, "/jobs/job.yaml", overrides);
  INFO(spec.status());
  REQUIRE(spec.ok());
  return *spec;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_JOB_TEST_UTIL_H_
