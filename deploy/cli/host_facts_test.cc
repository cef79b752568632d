#include "deploy/cli/host_facts.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

namespace lockstep::cli {
namespace {

using Catch::Contains;

HostFacts Healthy() {
  HostFacts facts;
  facts.cores = 8;
  facts.memory_bytes = int64_t{16} << 30;
  facts.open_files = 1 << 20;
  facts.shows_stacks = true;
  facts.fast_encryption = true;
  facts.addresses = {"10.0.0.2 (eth0)"};
  return facts;
}

// The only warning; fails where there is another number of them.
Finding Warning(const HostFacts& facts) {
  std::vector<Finding> warnings;
  for (const Finding& finding : DescribeHost(facts)) {
    if (finding.gravity != Gravity::kOk) warnings.push_back(finding);
  }
  REQUIRE(warnings.size() == 1);
  return warnings[0];
}

TEST_CASE("doctor: a machine that lacks nothing has no warning") {
  for (const Finding& finding : DescribeHost(Healthy())) {
    CAPTURE(finding.what, finding.text);
    CHECK(finding.gravity == Gravity::kOk);
  }
}

TEST_CASE("doctor: what is lacking is named with its remedy") {
  HostFacts facts = Healthy();
  SECTION("files") {
    facts.open_files = 1024;
    CHECK_THAT(Warning(facts).text, Contains("1024; ") && Contains("LimitNOFILE="));
  }
  SECTION("a part of a core") {
    facts.core_quota = 0.5;
    CHECK_THAT(Warning(facts).text, Contains("8, of which the control group gives 0.5") && Contains("cpu_threads"));
  }
  SECTION("memory, by the control group") {
    facts.memory_limit_bytes = int64_t{1} << 30;
    CHECK_THAT(Warning(facts).text, Contains("1.0 GiB, the control group's limit") && Contains("check JOB --plan"));
  }
  SECTION("stacks") {
    facts.shows_stacks = false;
    CHECK_THAT(Warning(facts).text, Contains("memfd_create"));
  }
  SECTION("AES") {
    facts.fast_encryption = false;
    CHECK_THAT(Warning(facts).text, Contains("security.peers"));
  }
  SECTION("a network") {
    facts.addresses.clear();
    CHECK_THAT(Warning(facts).text, Contains("loopback alone"));
  }
}

TEST_CASE("doctor: a quota of more than a core, and a limit above what is free, are no lack") {
  HostFacts facts = Healthy();
  facts.core_quota = 2.5;
  facts.memory_limit_bytes = int64_t{64} << 30;
  for (const Finding& finding : DescribeHost(facts)) CHECK(finding.gravity == Gravity::kOk);
}

TEST_CASE("doctor: this machine's facts are read") {
  const HostFacts facts = ReadHostFacts();
  CHECK(facts.cores >= 1);
  CHECK(facts.memory_bytes > 0);
  CHECK(facts.open_files > 0);
  CHECK(facts.shows_stacks);
}

}  // namespace
}  // namespace lockstep::cli
