// The parts of SessionCore, each by itself.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/session/boundary_requests.h"
#include "worker/session/chief_link.h"
#include "worker/session/grace_period.h"
#include "worker/session/held_snapshots.h"
#include "worker/session/kept_copies.h"
#include "worker/session/membership.h"
#include "worker/session/unsent_reports.h"

namespace lockstep::worker {
namespace {

const absl::Time kNow = absl::UnixEpoch();
constexpr absl::Duration kSecond = absl::Seconds(1);
constexpr absl::Duration kSilence = absl::Seconds(8);
using Link = ChiefLink::State;

ChiefLink Welcomed(Term term) {
  ChiefLink link(7, absl::Seconds(5));
  link.Begin(kNow);
  link.Try(kNow);
  CHECK(link.Connected());
  link.HelloSent(kNow);
  link.Welcomed(term);
  link.Heard(kNow);
  return link;
}

TEST_CASE("chief link: a session begins with an attempt, a Hello and a Welcome", "[session]") {
  ChiefLink link(7, absl::Seconds(5));
  link.Begin(kNow);
  CHECK(link.ConnectIsDue(kNow));
  CHECK_FALSE(link.Connected());  // nobody tried
  link.Try(kNow);
  CHECK_FALSE(link.ConnectIsDue(kNow + kSecond));
  CHECK(link.NextDeadline(kSilence) == absl::InfiniteFuture());
  CHECK(link.Connected());
  link.HelloSent(kNow);
  CHECK(link.NextDeadline(kSilence) == kNow + absl::Seconds(5));
  CHECK(link.GreetingIsOver(kNow + absl::Seconds(5)));
  link.Welcomed(3);
  link.Heard(kNow + kSecond);
  CHECK(link.welcomed());
  CHECK(link.term() == 3);
  CHECK(link.NextDeadline(kSilence) == kNow + kSecond + kSilence);
}

TEST_CASE("chief link: attempts of one process come at other instants than those of another one", "[session]") {
  const auto wait = [](uint64_t seed) {
    ChiefLink link(seed, absl::Seconds(5));
    link.Try(kNow);
    link.Lost(kNow, kSecond);
    return link.NextDeadline(kSilence) - kNow;
  };
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CHECK(wait(seed * 0x9E3779B97F4A7C15) >= kSecond / 2);
    CHECK(wait(seed * 0x9E3779B97F4A7C15) <= kSecond);
  }
  CHECK(wait(1ull << 62) != wait(1ull << 63));
}

TEST_CASE("chief link: only a chief that welcomed this worker restarts the time without one", "[session]") {
  ChiefLink link = Welcomed(3);
  CHECK(link.Lost(kNow + kSecond, kSecond));
  CHECK(link.down_since() == kNow + kSecond);
  link.Try(kNow + 2 * kSecond);
  CHECK(link.Connected());
  CHECK(link.Lost(kNow + 3 * kSecond, kSecond));
  CHECK(link.down_since() == kNow + kSecond);
  link.Try(kNow + 4 * kSecond);
  CHECK_FALSE(link.Lost(kNow + 5 * kSecond, kSecond));  // it was never there
}

TEST_CASE("chief link: a beat of another term says nothing, and a pause is no silence", "[session]") {
  ChiefLink link = Welcomed(3);
  link.BeatAnswered(kNow + 7 * kSecond, 2);
  CHECK(link.IsSilent(kNow + kSilence, kSilence));
  link.BeatAnswered(kNow + 7 * kSecond, 3);
  CHECK_FALSE(link.IsSilent(kNow + kSilence, kSilence));
  link.Paused(absl::Seconds(100));
  CHECK_FALSE(link.IsSilent(kNow + absl::Seconds(107), kSilence));
}

TEST_CASE("chief link: a Hello that waits is said after a pause, and waits only while greeting", "[session]") {
  ChiefLink link(7, absl::Seconds(5));
  link.Try(kNow);
  CHECK(link.Connected());
  link.HelloWaits();
  CHECK(link.NextDeadline(kSilence) == absl::InfiniteFuture());
  CHECK(link.BrokenInvariant().empty());
  link.Lost(kNow, kSecond);
  CHECK_FALSE(link.hello_waits());
  link.HelloWaits();
  CHECK_FALSE(link.BrokenInvariant().empty());
}

TEST_CASE("grace period: the shortest one counts, and a killed process keeps its last moments", "[session]") {
  GracePeriod grace;
  CHECK_FALSE(grace.AsksToLeave(kNow, true, kSecond));
  CHECK(grace.Begin(kNow, absl::Seconds(10)));
  CHECK(grace.end() == kNow + absl::Seconds(9.5));
  CHECK_FALSE(grace.Begin(kNow + kSecond, absl::Seconds(30)));
  CHECK(grace.end() == kNow + absl::Seconds(9.5));
  CHECK_FALSE(grace.Begin(kNow + kSecond, absl::Seconds(1)));
  CHECK(grace.end() == kNow + absl::Seconds(1.9));
  CHECK(grace.Left(kNow + absl::Seconds(5)) == absl::ZeroDuration());
  CHECK(grace.IsOver(grace.end()));
}

TEST_CASE("grace period: without a chief a worker asks to leave late", "[session]") {
  GracePeriod grace;
  grace.Begin(kNow, absl::Seconds(10));
  CHECK(grace.AsksToLeave(kNow, true, kSecond));
  CHECK_FALSE(grace.AsksToLeave(kNow, false, kSecond));
  CHECK(grace.AsksToLeave(kNow + absl::Seconds(8.5), false, kSecond));
}

DigestComputed Copy(uint64_t step) { return {{step, 0}, "digest", true, absl::Milliseconds(1), false}; }

TEST_CASE("kept copies: the oldest one goes, and each is found by what the chief calls it", "[session]") {
  KeptCopies kept;
  CHECK_FALSE(kept.IsDue(kNow));
  kept.Allow(true);
  CHECK(kept.IsDue(kNow));
  for (uint64_t step = 1; step <= kMaxKeptStates; ++step) {
    CHECK_FALSE(kept.Begin(kNow).has_value());
    kept.Note(Copy(step), "line", {});
  }
  CHECK_FALSE(kept.IsDue(kNow));  // apart
  CHECK(kept.Begin(kNow)->step == 1);
  kept.Note(Copy(9), "line", {});
  CHECK(kept.States().size() == kMaxKeptStates);
  CHECK(kept.Find(Position{9, 0}, "digest") != nullptr);
  CHECK(kept.Find(Position{9, 0}, "other") == nullptr);
  CHECK(kept.Find(Position{1, 0}, "digest") == nullptr);
  kept.Note(Copy(9), "line", {});  // once more
  CHECK(kept.States().size() == kMaxKeptStates);
}

TEST_CASE("kept copies: what could not be kept is not tried again", "[session]") {
  KeptCopies kept;
  kept.Allow(true);
  kept.Begin(kNow);
  kept.Note({{1, 0}, "digest", false, absl::ZeroDuration(), true}, "line", {});
  CHECK_FALSE(kept.IsDue(kNow + absl::Hours(1)));
  CHECK(kept.States().empty());
}

TEST_CASE("kept copies: who goes back keeps what was before, under the new lineage", "[session]") {
  KeptCopies kept;
  kept.Begin(kNow);
  kept.Note(Copy(4), "line", {});
  kept.Begin(kNow);
  kept.Note(Copy(8), "line", {});
  const std::vector<SnapshotId> later = kept.GoBackTo(4, "next");
  REQUIRE(later.size() == 1);
  CHECK(later[0].step == 8);
  REQUIRE(kept.States().size() == 1);
  CHECK(kept.States()[0].lineage == "next");
  CHECK(kept.Find(SnapshotId{"line", 4, "digest"}) != nullptr);  // the store knows it by that name
  CHECK(kept.TakeAll().size() == 1);
  CHECK(kept.States().empty());
}

TEST_CASE("held snapshots: the oldest one goes where there are too many", "[session]") {
  HeldSnapshots held;
  for (uint64_t step = 1; step <= kMaxHeldSnapshots; ++step) {
    CHECK_FALSE(held.Add({"line", step, SnapshotCause::kDue, {}, {}, std::nullopt}).has_value());
  }
  CHECK(held.Add({"line", 100, SnapshotCause::kDue, {}, {}, std::nullopt})->step == 1);
  CHECK(held.Find("line", 1) == nullptr);
  CHECK(held.Find("other", 100) == nullptr);
  const SnapshotId id{"line", 100, "digest"};
  CHECK_FALSE(held.Holds(id));  // its digest is not known yet
  held.Find("line", 100)->id = id;
  CHECK(held.Holds(id));
  CHECK(held.Remove(id));
  CHECK_FALSE(held.Remove(id));
  CHECK(held.all().size() == kMaxHeldSnapshots - 1);
}

TEST_CASE("unsent reports: the oldest go, and a position is told once", "[session]") {
  UnsentReports reports;
  CHECK(reports.IsPending({1, 0}));
  for (uint64_t step = 1; step <= 1025; ++step) reports.Add(StateDigest{{step, 0}, "digest"});
  const Report report = reports.Take(kNow, kSecond, {3, 1}, "line", {1025, 0});
  CHECK(report.digests.size() == 1024);
  CHECK(report.digests.front().position.step == 2);
  CHECK_FALSE(reports.IsPending({1025, 0}));
  CHECK(reports.IsPending({1026, 0}));
  CHECK(reports.next() == kNow + kSecond);
  reports.SayPositionAgain();
  CHECK(reports.IsPending({1025, 0}));
}

TEST_CASE("held evaluations: a slice joins its evaluation, and the newest 16 are kept", "[session]") {
  HeldEvaluations held;
  for (uint64_t step = 1; step <= 17; ++step) {
    held.Add("line", step, {});
    held.Add("line", step, {});
  }
  CHECK(held.Messages().size() == 16);
  CHECK(held.Messages().front().step == 2);
  CHECK(held.Messages().front().slices.size() == 2);
  held.Rename("line", "next");
  CHECK(held.Messages().front().lineage == "next");
  held.GoBackTo(3, "other");
  CHECK(held.Messages().size() == 2);
  CHECK(held.Messages().back().lineage == "other");
}

TEST_CASE("held evaluations: no message has more slices than one may carry", "[session]") {
  HeldEvaluations held;
  for (size_t slice = 0; slice <= kMaxRepeated; ++slice) held.Add("line", 1, {});
  REQUIRE(held.Messages().size() == 2);
  CHECK(held.Messages()[0].slices.size() == kMaxRepeated);
  CHECK(held.Messages()[1].slices.size() == 1);
}

TEST_CASE("membership: a worker knows its rank, and the newest generation that it heard of", "[session]") {
  Membership membership({0, 5});
  Form form;
  form.members = {{{0, 4}, "a", "x"}, {{0, 5}, "b", "y"}};
  CHECK(membership.none());
  CHECK(membership.RankIn({}) == 0);
  membership.Enter({3, 1}, form);
  CHECK(membership.rank() == 1);
  CHECK(membership.BrokenInvariant().empty());
  membership.Supersede({2, 9});
  CHECK(membership.newest() == Generation{3, 1});
  membership.Supersede({3, 2});
  membership.End();
  CHECK(membership.none());
  CHECK(membership.newest() == Generation{3, 2});
  CHECK(membership.BrokenInvariant().empty());
}

TEST_CASE("membership: one that is not among its members is broken", "[session]") {
  Membership membership({0, 5});
  Form form;
  form.members = {{{0, 4}, "a", "x"}};
  membership.Enter({3, 1}, form);
  CHECK_FALSE(membership.BrokenInvariant().empty());
}

TEST_CASE("boundary requests: one that was served elsewhere is not asked for again", "[session]") {
  BoundaryRequests requests;
  CHECK(requests.Ask(RequestKind::kSnapshot, 2));
  CHECK(requests.contributed()[static_cast<size_t>(RequestKind::kSnapshot)] == 2);
  BoundaryRequests::Numbers served{};
  served[static_cast<size_t>(RequestKind::kSnapshot)] = 2;
  requests.Serve(served);
  CHECK(requests.contributed() == BoundaryRequests::Numbers{});
  CHECK_FALSE(requests.Ask(RequestKind::kSnapshot, 2));
  CHECK(requests.Ask(RequestKind::kSnapshot, 3));
  requests.Clear();
  CHECK(requests.Ask(RequestKind::kSnapshot, 1));
}

}  // namespace
}  // namespace lockstep::worker
