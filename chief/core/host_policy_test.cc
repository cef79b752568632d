#include "chief/core/host_policy.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

struct Hosts : CoreFixture {
  explicit Hosts(uint32_t after = 2) : hosts(With(after), RecoveredState()) {
    for (int index = 0; index < 3; ++index) Add(index, index < 2 ? "one" : "other");
    for (const Worker* worker : All()) hosts.Came(*worker);
  }
  static JobPolicy With(uint32_t after) {
    JobPolicy policy;
    policy.exclude_host_after = after;
    policy.max_failures = 2;
    return policy;
  }
  std::string Fail(const std::string& host) { return hosts.CountFailure(Now(), host, "boom", false); }

  HostPolicy hosts;
};

TEST_CASE("host policy: a host that fails again and again is left out where others suffice", "[core]") {
  Hosts test;
  CHECK(test.Fail("one").empty());
  CHECK(test.hosts.spent() == 1);
  test.hosts.BeginEvent();

  CHECK(test.Fail("one").empty());

  CHECK(test.hosts.IsExcluded("one"));
  CHECK(test.hosts.left_out() == std::vector<std::string>{"one"});
  CHECK(test.hosts.spent() == 0);  // given back
  CHECK(test.worker(0).leaving);
  CHECK(test.worker(1).leaving);
  CHECK_FALSE(test.worker(2).leaving);
  test.hosts.BeginEvent();
  CHECK(test.hosts.left_out().empty());
}

TEST_CASE("host policy: where others do not suffice the job's budget pays", "[core]") {
  Hosts test;
  test.policy.min_workers = 2;  // without host one there is one worker

  CHECK(test.Fail("one").empty());
  CHECK(test.Fail("one").empty());
  CHECK_THAT(test.Fail("one"), Contains("the failure budget is spent"));

  CHECK_FALSE(test.hosts.IsExcluded("one"));
  CHECK(test.hosts.left_out().empty());
}

TEST_CASE("host policy: the only host is never left out", "[core]") {
  Hosts test;
  test.Remove(2);
  for (int failure = 0; failure < 4; ++failure) test.Fail("one");
  CHECK_FALSE(test.hosts.IsExcluded("one"));
}

TEST_CASE("host policy: errors that break generations without a step between stop the job", "[core]") {
  Hosts test(/*after=*/0);
  const auto fail = [&] { return test.hosts.CountFailure(test.Now(), "one", "boom", true); };
  test.hosts.SavePublished(test.Now(), 1, absl::ZeroDuration());
  CHECK(fail().empty());
  CHECK(fail().empty());
  test.hosts.StepAgreed();
  test.hosts.SavePublished(test.Now(), 2, absl::ZeroDuration());
  CHECK(fail().empty());
  test.hosts.SavePublished(test.Now(), 3, absl::ZeroDuration());
  CHECK(fail().empty());
  test.hosts.SavePublished(test.Now(), 4, absl::ZeroDuration());
  CHECK_THAT(fail(), Contains("3 generations in a row"));
}

TEST_CASE("host policy: a state that differs counts against the host, not against the budget", "[core]") {
  Hosts test(/*after=*/1);
  test.hosts.CountMismatch(test.Now(), test.worker(2), "step 7");
  CHECK(test.hosts.IsExcluded("other"));
  CHECK(test.hosts.spent() == 0);
  CHECK_THAT(test.hosts.RefusalText("other"), Contains("worker-2 differed at step 7"));
}

}  // namespace
}  // namespace lockstep::chief
