#include "chief/core/drains.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace lockstep::chief {
namespace {

const absl::Time kSoon = absl::FromUnixSeconds(100);
const absl::Time kLater = absl::FromUnixSeconds(200);

TEST_CASE("drains: a drain names a worker, a host, or both", "[core]") {
  Drains drains;
  drains.Saw("worker-0", "a");
  drains.Saw("worker-1", "a");
  drains.Saw("b", "c");
  drains.Saw("worker-3", "b");

  drains.Add("worker-1", kSoon);
  drains.Add("b", kSoon);

  CHECK(drains.Of("worker-0", "a") == std::nullopt);
  CHECK(drains.Of("worker-1", "a") == "worker-1");
  CHECK(drains.Of("worker-1", "elsewhere") == "worker-1");
  CHECK(drains.Of("b", "c") == "b");
  CHECK(drains.Of("worker-3", "b") == "b");
  CHECK(drains.Of("worker-9", "b") == "b");
}

TEST_CASE("drains: a process without a name on the host of a drained worker is its successor", "[core]") {
  Drains drains;
  drains.Saw("worker-0", "a");
  drains.Saw("worker-1", "b");

  drains.Add("worker-1", kSoon);

  CHECK(drains.Of("", "b") == "worker-1");
  CHECK(drains.Of("", "a") == std::nullopt);
  CHECK(drains.Of("worker-2", "b") == std::nullopt);
}

TEST_CASE("drains: the host counts where the worker was seen last", "[core]") {
  Drains drains;
  drains.Saw("worker-1", "b");
  drains.Add("worker-1", kSoon);

  drains.Saw("worker-1", "d");

  CHECK(drains.Of("", "b") == std::nullopt);
  CHECK(drains.Of("", "d") == "worker-1");
}

TEST_CASE("drains: who was seen once is known, also after it went", "[core]") {
  Drains drains;
  CHECK_FALSE(drains.Knows("worker-0"));
  drains.Saw("worker-0", "a");

  CHECK(drains.Knows("worker-0"));
  CHECK(drains.Knows("a"));
  CHECK_FALSE(drains.Knows("worker-1"));
  CHECK(drains.Known() == std::vector<std::string>{"worker-0 on a"});
}

TEST_CASE("drains: a lifted drain keeps nobody away", "[core]") {
  Drains drains;
  drains.Saw("worker-0", "a");
  drains.Add("worker-0", kSoon);
  drains.Add("a", kLater);

  drains.Lift("worker-0");
  CHECK(drains.Of("worker-0", "a") == "a");
  drains.Lift("a");

  CHECK(drains.Of("worker-0", "a") == std::nullopt);
  CHECK(drains.empty());
}

TEST_CASE("drains: of two drains of one worker the earlier time counts, of one repeated the newer", "[core]") {
  Drains drains;
  drains.Saw("worker-0", "a");
  CHECK(drains.UntilOf("worker-0", "a") == absl::InfiniteFuture());

  drains.Add("worker-0", kLater);
  drains.Add("a", kSoon);
  CHECK(drains.UntilOf("worker-0", "a") == kSoon);
  drains.Add("a", absl::InfiniteFuture());

  CHECK(drains.UntilOf("worker-0", "a") == kLater);
}

TEST_CASE("drains: of the processes that a drain turns away one is told about", "[core]") {
  Drains drains;
  drains.Add("a", kSoon);

  CHECK(drains.FirstRefusal("a"));
  CHECK_FALSE(drains.FirstRefusal("a"));
  drains.Add("a", kSoon);

  CHECK(drains.FirstRefusal("a"));
}

TEST_CASE("drains: what is stored keeps the same processes away under the next chief", "[core]") {
  Drains before;
  before.Saw("worker-1", "b");
  before.Add("worker-1", kSoon);
  before.Add("a", kSoon);

  const Drains after(before.All());

  CHECK(after.Targets() == std::vector<std::string>{"a", "worker-1"});
  CHECK(after.Of("", "b") == "worker-1");
  CHECK(after.Of("worker-5", "a") == "a");
  CHECK(after.Knows("worker-1"));
  CHECK(after.UntilOf("worker-1", "b") == absl::InfiniteFuture());
}

TEST_CASE("drains: there is a limit", "[core]") {
  Drains drains;
  for (size_t i = 0; i < kMaxWorkers; ++i) CHECK(drains.Add("host-" + std::to_string(i), kSoon));

  CHECK_FALSE(drains.Add("one-more", kSoon));
  CHECK(drains.Add("host-0", kLater));
}

}  // namespace
}  // namespace lockstep::chief
