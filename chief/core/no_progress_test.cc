#include "chief/core/no_progress.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

constexpr absl::Duration kLeast = absl::Seconds(10);

TEST_CASE("no progress: a worker that was lost has twice as long, others do not", "[core]") {
  NoProgressLimit limit(kLeast);

  limit.Lost("worker-1");
  CHECK(limit.Of("worker-1") == 2 * kLeast);
  CHECK(limit.Of("worker-0") == kLeast);
  limit.Lost("worker-1");

  CHECK(limit.Of("worker-1") == 4 * kLeast);
}

TEST_CASE("no progress: hangs in weeks do not add up", "[core]") {
  NoProgressLimit limit(kLeast);

  for (int week = 0; week < 10; ++week) {
    limit.Lost("worker-1");
    limit.Stepped("worker-1");
  }

  CHECK(limit.Of("worker-1") == kLeast);
}

TEST_CASE("no progress: steps of others without the worker tell nothing of it", "[core]") {
  NoProgressLimit limit(kLeast);

  limit.Lost("worker-1");
  limit.Stepped("worker-0");

  CHECK(limit.Of("worker-1") == 2 * kLeast);
}

TEST_CASE("no progress: a kernel that takes long is known after it was survived once", "[core]") {
  NoProgressLimit limit(kLeast);
  const absl::Duration kernel = absl::Seconds(35);

  int lost = 0;
  for (int step = 0; step < 5; ++step) {
    while (kernel > limit.Of("worker-1")) {
      limit.Lost("worker-1");
      REQUIRE(++lost < 10);
    }
    limit.WentOn(kernel);
    limit.Stepped("worker-1");
  }

  CHECK(lost == 2);  // at 10 and at 20 s
  CHECK(limit.Of("worker-0") > kernel);
}

TEST_CASE("no progress: standing still within the limit does not raise it", "[core]") {
  NoProgressLimit limit(kLeast);

  for (int step = 0; step < 100; ++step) {
    limit.WentOn(limit.Of("worker-1") - absl::Seconds(1));
    limit.Stepped("worker-1");
  }

  CHECK(limit.Of("worker-1") == kLeast);
}

TEST_CASE("no progress: the limit of a worker that hangs again and again is bounded", "[core]") {
  NoProgressLimit limit(kLeast);

  for (int i = 0; i < 100; ++i) limit.Lost("worker-1");

  CHECK(limit.Of("worker-1") <= kLeast * 1024);
}

TEST_CASE("no progress: a limit that nothing needs any more shrinks again", "[core]") {
  NoProgressLimit limit(kLeast);
  limit.Lost("worker-1");
  limit.WentOn(absl::Seconds(15));
  limit.Stepped("worker-1");
  REQUIRE(limit.Of("worker-1") == absl::Seconds(30));

  for (uint32_t step = 0; step < 3 * NoProgressLimit::kForgetAfter; ++step) {
    limit.WentOn(absl::Milliseconds(100));
    if (limit.IsRaised()) limit.Stepped("worker-1");
  }

  CHECK(limit.Of("worker-1") == kLeast);
}

}  // namespace
}  // namespace lockstep::chief
