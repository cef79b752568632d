#include "chief/server/last_events.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

absl::Time At(int seconds) { return absl::FromUnixSeconds(1000 + seconds); }

TEST_CASE("last events: what was decided is told with its event, oldest first", "[chief]") {
  LastEvents last;

  last.Keep(At(1), StopRequested{"SIGTERM", 75}, {Announce{Level::kInfo, "saving first"}});
  last.Keep(At(2), Tick{}, {});
  last.Keep(At(3), SessionClosed{7, "reset"}, {CloseSession{7, "gone"}, Exit{70, "wrong"}});

  const std::string text = last.Text();
  CHECK_THAT(text, Catch::StartsWith("# the last 2 of 3 events"));
  CHECK(text.find("SIGTERM") < text.find("saving first"));
  CHECK(text.find("saving first") < text.find("reset"));
  CHECK_THAT(text, Catch::Contains("\nA ") && Catch::Contains("wrong"));
}

TEST_CASE("last events: the oldest make room", "[chief]") {
  LastEvents last;

  for (uint64_t i = 0; i < LastEvents::kMost + 1; ++i) {
    last.Keep(At(0), SessionClosed{i, absl::StrCat("number ", i, ".")}, {CloseSession{i, ""}});
  }

  CHECK_THAT(last.Text(), !Catch::Contains("number 0."));
  CHECK_THAT(last.Text(), Catch::Contains("number 1.") && Catch::Contains(absl::StrCat("number ", LastEvents::kMost)));
}

}  // namespace
}  // namespace lockstep::chief
