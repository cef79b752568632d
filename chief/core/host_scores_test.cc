#include "chief/core/host_scores.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("hosts: the third failure of a host is enough, others' do not count", "[core]") {
  HostScores hosts(3, {}, absl::ZeroDuration());

  CHECK_FALSE(hosts.Failed("a", "first"));
  CHECK_FALSE(hosts.Failed("a", "second"));
  CHECK_FALSE(hosts.Failed("b", "other"));
  CHECK(hosts.Failed("a", "worker-1 died of signal 11"));
  CHECK_FALSE(hosts.IsExcluded("a"));  // whether others can do without it is not known here
  hosts.Exclude("a");

  CHECK(hosts.IsExcluded("a"));
  CHECK_FALSE(hosts.IsExcluded("b"));
  CHECK(hosts.AnyExcluded());
  CHECK_THAT(hosts.RefusalText("a"), Contains("host a") && Contains("3 failures") && Contains("signal 11"));
}

TEST_CASE("hosts: with 0 no host is left out, also none that an earlier chief left out", "[core]") {
  HostScores hosts(0, {{"a", 3, true, "x"}}, absl::ZeroDuration());

  for (int i = 0; i < 100; ++i) CHECK_FALSE(hosts.Failed("a", "x"));
  CHECK_FALSE(hosts.IsExcluded("a"));
  CHECK_FALSE(hosts.Records()[0].excluded);
}

TEST_CASE("hosts: progress forgives, at most one failure of each host in ten minutes of training", "[core]") {
  HostScores hosts(2, {}, absl::Minutes(100));
  for (int i = 0; i < 2; ++i) hosts.Failed("a", "x");
  hosts.Failed("b", "x");
  hosts.Exclude("a");

  CHECK(hosts.SavePublished(10, absl::Minutes(109)).empty());
  CHECK(hosts.FailuresOf("a") == 2);
  CHECK(hosts.SavePublished(20, absl::Minutes(110)).empty());
  CHECK(hosts.FailuresOf("a") == 1);
  CHECK(hosts.FailuresOf("b") == 0);
  CHECK(hosts.IsExcluded("a"));  // until all is forgiven
  CHECK(hosts.SavePublished(30, absl::Minutes(111)).empty());
  CHECK(hosts.SavePublished(30, absl::Minutes(130)).empty());  // the same once more is no progress

  CHECK(hosts.SavePublished(40, absl::Minutes(130)) == std::vector<std::string>{"a"});
  CHECK_FALSE(hosts.IsExcluded("a"));
  CHECK(hosts.Records().empty());
}

TEST_CASE("hosts: the next chief goes on with the records", "[core]") {
  HostScores before(3, {}, absl::ZeroDuration());
  for (int i = 0; i < 3; ++i) before.Failed("a", "x");
  before.Exclude("a");
  before.Failed("b", "y");
  before.Failed("b", "z");

  HostScores after(3, before.Records(), absl::Hours(5));

  CHECK(after.IsExcluded("a"));
  CHECK(after.FailuresOf("b") == 2);
  CHECK(after.Records()[1].cause == "z");
  CHECK(after.Failed("b", "w"));
  CHECK(after.SavePublished(1, absl::Hours(5)).empty());
  CHECK(after.FailuresOf("a") == 3);
}

TEST_CASE("hosts: a name stands for the host of its newest worker", "[core]") {
  HostScores hosts(3, {}, absl::ZeroDuration());
  hosts.Came("worker-1", "a");
  hosts.Came("worker-1", "b");

  CHECK(hosts.HostOf("worker-1") == "b");
  CHECK(hosts.HostOf("worker-2").empty());
  CHECK_FALSE(hosts.Failed("", "somewhere"));
  CHECK(hosts.Records().empty());
}

}  // namespace
}  // namespace lockstep::chief
