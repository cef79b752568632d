#include "chief/server/burst.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

TEST_CASE("burst: few inputs are decided one by one", "[server]") {
  Burst burst;

  CHECK_FALSE(burst.Begins(Burst::kLeast - 2));
  CHECK_FALSE(burst.Ends());
}

TEST_CASE("burst: it takes in what lay in the queue, and nothing that comes meanwhile", "[server]") {
  Burst burst;
  CHECK(burst.Begins(9));

  for (int input = 1; input < 10; ++input) {
    CHECK_FALSE(burst.Ends());
    CHECK_FALSE(burst.Begins(100));
  }

  CHECK(burst.Ends());
  CHECK(burst.Begins(100));
}

TEST_CASE("burst: it has a limit, and a tick ends it", "[server]") {
  Burst burst;
  CHECK(burst.Begins(5 * Burst::kLongest));
  size_t inputs = 1;
  while (!burst.Ends()) ++inputs;
  CHECK(inputs == Burst::kLongest);

  CHECK(burst.Begins(100));
  burst.Cancel();

  CHECK_FALSE(burst.Ends());
}

}  // namespace
}  // namespace lockstep::chief
