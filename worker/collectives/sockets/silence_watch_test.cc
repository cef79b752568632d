#include "worker/collectives/sockets/silence_watch.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::worker {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

struct Watched {
  Watched() {
    watch.Heard(1, kStart);
    watch.Heard(2, kStart);
  }
  SilenceWatch::Findings LookAt(double seconds) { return watch.Look(At(seconds), watch.NextLook()); }

  SilenceWatch watch{absl::Seconds(30), absl::Seconds(10)};
};

TEST_CASE("silence watch: who was not heard for long is asked once, and is silent when no answer comes", "[sockets]") {
  Watched watched;
  CHECK(watched.watch.NextLook() == At(30));
  CHECK(watched.LookAt(29.9).to_ask.empty());
  watched.watch.Heard(2, At(15));

  CHECK(watched.LookAt(30).to_ask == std::vector<int>{1});
  CHECK(watched.watch.NextLook() == At(40));
  CHECK(watched.LookAt(31).to_ask.empty());
  CHECK(watched.LookAt(39.9).silent == -1);
  CHECK(watched.LookAt(40).silent == 1);
}

TEST_CASE("silence watch: an answer begins everything anew", "[sockets]") {
  Watched watched;
  CHECK(watched.LookAt(30).to_ask == std::vector<int>{1, 2});
  watched.watch.Heard(1, At(39));
  watched.watch.Heard(2, At(39));

  CHECK(watched.LookAt(41).silent == -1);
  CHECK(watched.watch.NextLook() == At(69));
  CHECK(watched.LookAt(69).to_ask == std::vector<int>{1, 2});
}

TEST_CASE("silence watch: a process that was stopped itself names nobody for that", "[sockets]") {
  Watched watched;
  CHECK(watched.LookAt(30).to_ask == std::vector<int>{1, 2});

  // It meant to look at 40.
  CHECK(watched.LookAt(200).silent == -1);
  CHECK(watched.LookAt(209).silent == -1);
  CHECK(watched.LookAt(210).silent == 1);
}

}  // namespace
}  // namespace lockstep::worker
