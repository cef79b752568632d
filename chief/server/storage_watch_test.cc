#include "chief/server/storage_watch.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

using Catch::Contains;

TEST_CASE("storage watch: a storage that does not answer is said at once, then now and then, and its return",
          "[server]") {
  StorageWatch watch;
  absl::Time now = absl::UnixEpoch();
  CHECK(watch.Due(now));
  CHECK(watch.Look(now, "").empty());
  CHECK_FALSE(watch.Due(now + StorageWatch::kLookEvery / 2));

  now += absl::Seconds(10);
  CHECK_THAT(watch.Look(now, "writing /d/x for 3s"), Contains("for 3s (writing /d/x") && Contains("saves wait"));
  CHECK(watch.stands() == "writing /d/x for 3s");
  now += absl::Seconds(30);
  CHECK(watch.Look(now, "writing /d/x for 33s").empty());
  now += absl::Seconds(30);
  CHECK_THAT(watch.Look(now, "writing /d/x for 63s"), Contains("not answered for 1m3s"));

  now += absl::Seconds(2);
  CHECK_THAT(watch.Look(now, ""), Contains("answers again, after 1m5s"));
  CHECK(watch.stands().empty());
  CHECK(watch.Look(now, "").empty());
  CHECK_THAT(watch.Look(now, "syncing"), Contains("for 3s"));  // another time
}

}  // namespace
}  // namespace lockstep::chief
