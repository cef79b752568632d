#include "chief/standby/standby_watch.h"

#include <catch2/catch.hpp>
#include <string>

#include "chief/standby/chief_beat.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

using Seen = StandbyWatch::Verdict;

struct Watched {
  // Looks once a second for `time`; the chief beats each `beats`-th time.
  Seen Look(absl::Duration time, int beats = 0) {
    Seen verdict = Seen::kWatching;
    for (const absl::Time end = now + time; now < end && verdict == Seen::kWatching;) {
      now += absl::Seconds(1);
      if (beats > 0 && ++looks % beats == 0) sight.beat += "x";
      verdict = watch.Look(now, sight);
    }
    return verdict;
  }

  absl::Time now = absl::FromUnixSeconds(1000);
  int looks = 0;
  JobSight sight{.term = 3, .record = 7, .serves = true, .beat = "1"};
  StandbyWatch watch;
};

TEST_CASE("standby: a chief that beats is left alone, and one that is silent is replaced after the limit", "[chief]") {
  Watched job;
  CHECK(job.Look(absl::Hours(1), /*beats=*/5) == Seen::kWatching);

  const absl::Time silent_from = job.now;
  CHECK(job.Look(absl::Minutes(1)) == Seen::kTakeOver);

  CHECK(job.now - silent_from <= StandbyWatch::kSilence + absl::Seconds(1));
  CHECK(job.now - silent_from >= StandbyWatch::kSilence - absl::Seconds(1));
  CHECK_THAT(job.watch.reason(), Catch::Contains("term 3") && Catch::Contains("15s"));
}

TEST_CASE("standby: a new record is a sign of life too, and a new term begins the silence anew", "[chief]") {
  Watched job;
  CHECK(job.Look(absl::Seconds(14)) == Seen::kWatching);
  ++job.sight.record;
  CHECK(job.Look(absl::Seconds(14)) == Seen::kWatching);
  ++job.sight.term;  // another standby was faster
  CHECK(job.Look(absl::Seconds(14)) == Seen::kWatching);
  CHECK(job.Look(absl::Seconds(3)) == Seen::kTakeOver);
}

TEST_CASE("standby: a storage that hangs, or looks that fail, make no chief look dead", "[chief]") {
  Watched job;
  CHECK(job.Look(absl::Seconds(3)) == Seen::kWatching);
  for (int i = 0; i < 6; ++i) {  // each look takes a minute: that counts as two seconds of it
    job.now += absl::Minutes(1);
    CHECK(job.watch.Look(job.now, job.sight) == Seen::kWatching);
  }
  for (int i = 0; i < 100; ++i) {
    job.watch.LookFailed();
    job.now += absl::Seconds(2);
    CHECK(job.watch.Look(job.now, job.sight) == Seen::kWatching);
  }
}

TEST_CASE("standby: a chief of this machine whose process is gone is replaced at once", "[chief]") {
  Watched job;
  job.sight.lock_holder = "the chief with pid 7 on host a";
  CHECK(job.Look(absl::Seconds(2), 1) == Seen::kWatching);
  job.sight.lock_holder.reset();
  CHECK(job.Look(absl::Seconds(1)) == Seen::kTakeOver);
  CHECK_THAT(job.watch.reason(), Catch::Contains("pid 7"));
  // The claim was lost to another standby: it is watched in turn.
  ++job.sight.term;
  CHECK(job.Look(absl::Seconds(10)) == Seen::kWatching);
}

TEST_CASE("standby: a chief that was told to leave is followed at once, one that ended the job ends the standby",
          "[chief]") {
  for (const int code : {kExitPreempted, kExitStorage, kExitFenced}) {
    Watched job;
    job.sight.ended_with = code;
    CHECK(job.Look(absl::Seconds(1)) == Seen::kTakeOver);
  }
  for (const int code : {kExitDone, kExitBug, kExitBadJob}) {
    Watched job;
    job.sight.ended_with = code;
    CHECK(job.Look(absl::Seconds(1)) == Seen::kEnd);
    CHECK(job.watch.exit_code() == code);
  }
}

TEST_CASE("standby: a chief beats until it has been without workers for a while", "[chief]") {
  ChiefBeat beat;
  absl::Time now = absl::FromUnixSeconds(1);
  const auto beats = [&](absl::Duration time, size_t workers) {
    int count = 0;
    for (const absl::Time end = now + time; now < end; now += absl::Seconds(2)) count += beat.Due(now, workers) ? 1 : 0;
    return count;
  };
  CHECK(beats(absl::Minutes(2), 0) == 30);  // it waits for the first ones
  CHECK(beats(absl::Minutes(2), 3) == 30);
  CHECK(beats(absl::Seconds(20), 0) == 5);
  CHECK(beats(absl::Minutes(2), 0) <= 1);
  CHECK(beats(absl::Minutes(2), 1) == 30);
  CHECK(ChiefBeat::kEvery * 3 < StandbyWatch::kSilence);
}

TEST_CASE("standby: a chief that takes over is given the time to read a large checkpoint", "[chief]") {
  Watched job;
  job.sight.serves = false;
  CHECK(job.Look(absl::Minutes(4)) == Seen::kWatching);
  CHECK(job.Look(absl::Minutes(2)) == Seen::kTakeOver);
}

TEST_CASE("standby: a job that nobody began is begun after the limit", "[chief]") {
  Watched job;
  job.sight = {};
  CHECK(job.Look(absl::Minutes(1)) == Seen::kTakeOver);
  CHECK_THAT(job.watch.reason(), Catch::Contains("no chief"));
}

TEST_CASE("standby: a chief whose lease was seen is replaced when it is gone, and at no other time", "[chief]") {
  Watched job;
  CHECK(job.Look(absl::Seconds(3)) == Seen::kWatching);
  CHECK_FALSE(job.watch.LeaseEnded(3, false));  // it may have none
  CHECK(job.Look(absl::Seconds(3), /*beats=*/1) == Seen::kWatching);
  CHECK_FALSE(job.watch.LeaseEnded(3, true));
  CHECK(job.Look(absl::Seconds(3), /*beats=*/1) == Seen::kWatching);

  SECTION("it goes") {
    CHECK(job.watch.LeaseEnded(3, false));
    CHECK(job.Look(absl::Seconds(1), /*beats=*/1) == Seen::kTakeOver);
    CHECK_THAT(job.watch.reason(), Catch::Contains("the lease of the chief of term 3 in etcd has ended"));
    // The claim may be lost: then it begins anew.
    CHECK(job.Look(absl::Seconds(3)) == Seen::kWatching);
  }
  SECTION("it goes because the job is done") {
    CHECK(job.watch.LeaseEnded(3, false));
    job.sight.ended_with = kExitDone;
    CHECK(job.Look(absl::Seconds(1)) == Seen::kEnd);
  }
  SECTION("it comes back before the look") {
    CHECK(job.watch.LeaseEnded(3, false));
    CHECK_FALSE(job.watch.LeaseEnded(3, true));
    CHECK(job.Look(absl::Seconds(3), /*beats=*/1) == Seen::kWatching);
  }
  SECTION("another chief has the job") {
    CHECK(job.watch.LeaseEnded(3, false));
    job.sight.term = 4;
    CHECK(job.Look(absl::Seconds(3), /*beats=*/1) == Seen::kWatching);
    CHECK_FALSE(job.watch.LeaseEnded(4, false));
  }
}

}  // namespace
}  // namespace lockstep::chief
