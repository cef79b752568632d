// Two hundred generated workers and one chief, on real sockets: who is a member, and that nobody is lost on the way.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/load/crowd.h"
#include "tests/load/loaded_chief.h"

namespace lockstep::load {
namespace {

constexpr size_t kWorkers = 200;
constexpr absl::Duration kLimit = absl::Minutes(2);

size_t MembersOf(const proto::StatusReply& status) {
  size_t members = 0;
  for (const proto::WorkerStatus& worker : status.workers()) members += worker.rank() >= 0 ? 1 : 0;
  return members;
}

TEST_CASE("load: two hundred workers form, lose one, take one in, save and outlive their chief", "[load]") {
  LoadedChief chief(absl::StrCat(std::getenv("TEST_TMPDIR"), "/load.", getpid()), kWorkers,
                    {"checkpoint.every=3steps"});
  chief.Start();
  Crowd crowd({.directory = chief.directory(), .step_time = absl::Milliseconds(200), .address_bytes = 0});
  const auto await = [&](const std::string& what, const std::function<bool(const CrowdView&)>& condition) {
    if (crowd.WaitUntil(condition, kLimit)) return;
    const CrowdView view = crowd.View();
    FAIL("waited in vain for " << what << ": " << view.alive << " live, " << view.stepped << " of " << view.members
                               << " stepped in " << view.newest.ToString() << "\n"
                               << chief.Log());
  };

  // One generation of all.
  crowd.Start(kWorkers);
  await("all to step", [](const CrowdView& view) { return view.stepped == kWorkers; });
  CHECK(crowd.View().newest == Generation{1, 1});
  const auto formed = chief.Status();
  REQUIRE(formed.has_value());
  CHECK(formed->phase() == "RUNNING");
  CHECK(MembersOf(*formed) == kWorkers);

  // A cut connection costs one generation, and nobody else.
  crowd.KillOne();
  await("the others to step", [](const CrowdView& view) {
    return view.newest == Generation{1, 2} && view.stepped == kWorkers - 1;
  });
  CHECK(chief.Status()->losses() == 1);

  // A newcomer costs another.
  crowd.Start(1);
  await("it to step", [](const CrowdView& view) {
    return view.newest == Generation{1, 3} && view.stepped == kWorkers;
  });

  // Saves are published, of shares that all hold.
  await("a save", [&](const CrowdView&) { return chief.Status().value_or(proto::StatusReply()).published_step() > 0; });

  // A chief that is killed costs nothing: its successor goes on with the generation that it finds.
  chief.Kill();
  chief.Start();
  await("all to be welcome again", [](const CrowdView& view) {
    const auto welcomed = view.welcomed.find(2);
    return welcomed != view.welcomed.end() && welcomed->second == kWorkers;
  });
  const uint64_t step = crowd.View().least_step;
  await("steps under it", [&](const CrowdView& view) { return view.least_step > step + 1; });
  const auto adopted = chief.Status();
  REQUIRE(adopted.has_value());
  CHECK(adopted->phase() == "RUNNING");
  CHECK(adopted->generation().term() == 1);
  CHECK(adopted->generation().counter() == 3);
  CHECK(MembersOf(*adopted) == kWorkers);
  CHECK(crowd.View().exits.empty());
  std::string output;
  CHECK(chief.TimeStatusCommand(&output).ok());
}

}  // namespace
}  // namespace lockstep::load
