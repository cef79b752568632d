// Many workers, and many events at once.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

constexpr uint32_t kMany = 150;

ChiefHarness::Options Many() {
  ChiefHarness::Options options;
  options.workers = kMany;
  options.max = 2 * kMany;
  options.logical_shards = 4096;
  return options;
}

size_t Tests(const ChiefHarness& chief) {
  size_t count = 0;
  for (const Send& send : chief.All<Send>()) {
    if (const auto* test = std::get_if<TestPeers>(&send.command)) count += test->peers.size();
  }
  return count;
}

TEST_CASE("core: a crowd forms, loses a member and takes one in without testing all pairs", "[core]") {
  ChiefHarness chief(Many());
  chief.Advance(absl::Seconds(1));
  REQUIRE(chief.phase() == Phase::kRunning);
  CHECK(chief.Members().size() == kMany);
  CHECK(Tests(chief) < kMany * kMany / 4);
  chief.StepTo(10);
  chief.Forget();

  chief.Kill(3);
  chief.Advance(absl::Seconds(1));

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Members().size() == kMany - 1);
  CHECK(Tests(chief) == 0);

  chief.Connect(3);
  chief.MeetAtBoundary();
  chief.Advance(absl::Seconds(1));

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Members().size() == kMany);
  CHECK(Tests(chief) <= 2 * Reachability::SampleOf(kMany));
}

TEST_CASE("core: one that a crowd cannot reach stays outside", "[core]") {
  ChiefHarness::Options options = Many();
  options.workers = 0;
  options.expected = kMany;
  ChiefHarness chief(options);
  for (uint32_t index = 0; index < kMany; ++index) {
    for (uint32_t other = 0; other < kMany; ++other) {
      if (index == 5) chief.worker(5).unreachable.insert(absl::StrCat("worker-", other));
    }
    if (index != 5) chief.worker(static_cast<int>(index)).unreachable.insert("worker-5");
  }

  for (uint32_t index = 0; index < kMany; ++index) chief.Connect(static_cast<int>(index));
  chief.Advance(absl::Minutes(1));

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Members().size() == kMany - 1);
  CHECK(chief.Commands<Form>(5).empty());
}

TEST_CASE("core: what follows from a burst is decided at its end", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(10);
  for (int index : {1, 2}) chief.worker(index).mute = true;
  const Generation generation = chief.worker(1).generation;
  chief.Kill(0);
  const auto acknowledge = [&](int index) {
    chief.worker(index).mute = false;
    const FakeWorker& w = chief.worker(index);
    chief.Say(index, VerdictAck{generation, true, w.lineage, w.position, ""});
  };

  chief.Do(BurstBegins{});
  acknowledge(1);
  acknowledge(2);
  CHECK(chief.phase() == Phase::kBreaking);
  chief.Do(BurstEnds{});

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Members() == std::vector<int>{1, 2});
}

TEST_CASE("core: a tick ends a burst", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 1});

  chief.Do(BurstBegins{});
  chief.Connect(0);
  CHECK(chief.Commands<MakePlan>(0).empty());
  chief.Advance(absl::Milliseconds(500));

  CHECK(chief.Commands<MakePlan>(0).size() == 1);
  CHECK(chief.phase() == Phase::kRunning);
}

}  // namespace
}  // namespace lockstep::chief
