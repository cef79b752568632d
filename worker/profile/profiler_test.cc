#include "worker/profile/profiler.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "worker/profile/profile_report.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

// A clock that a test moves.
struct Hand {
  int64_t ns = 0;
  Profiler::Options Options(size_t most_spans = 1000) {
    return {.most_spans = most_spans, .now = [this] { return ns; }};
  }
};

int64_t SumOfRows(const ProfileReport& report) {
  return std::accumulate(report.rows.begin(), report.rows.end(), int64_t{0},
                         [](int64_t sum, const ProfileRow& row) { return sum + row.ns; });
}

TEST_CASE("profiler: what ran between start and stop is kept, and nothing else", "[profile]") {
  Hand hand;
  Profiler profiler(hand.Options());
  const int work = profiler.Add({.name = "conv1", .op = "Conv"});

  profiler.Record(work, 0, 5);
  hand.ns = 10;
  profiler.Start();
  profiler.Record(work, 12, 15);
  {
    const Profiler::Scope scope(&profiler, ProfileTrack::kUpdate, "(update)");
    hand.ns = 40;
  }
  profiler.Stop();
  profiler.Record(work, 41, 45);

  REQUIRE(profiler.spans().size() == 2);
  CHECK(profiler.spans()[0].begin_ns == 12);
  CHECK(profiler.spans()[1].end_ns == 40);
  CHECK(profiler.totals()[work].calls == 1);
  CHECK(profiler.totals()[work].ns == 3);
  CHECK(profiler.elapsed_ns() == 30);

  profiler.Start();
  CHECK(profiler.spans().empty());
  CHECK(profiler.totals()[work].calls == 0);
}

TEST_CASE("profiler: it keeps as many spans as it may, and goes on to count", "[profile]") {
  Hand hand;
  Profiler profiler(hand.Options(/*most_spans=*/2));
  const int work = profiler.Add({.name = "conv1", .op = "Conv"});
  profiler.Start();

  for (int i = 0; i < 2; ++i) profiler.Record(work, 10 * i, 10 * i + 1);
  CHECK_FALSE(profiler.left_out());
  for (int i = 2; i < 5; ++i) profiler.Record(work, 10 * i, 10 * i + 1);

  REQUIRE(profiler.spans().size() == 2);
  CHECK(profiler.spans()[1].begin_ns == 10);
  CHECK(profiler.left_out());
  CHECK(profiler.totals()[work].calls == 5);
  CHECK(profiler.totals()[work].ns == 5);
  profiler.Start();
  CHECK_FALSE(profiler.left_out());
}

TEST_CASE("profiler: a scope without a profiler does nothing, totals come without spans", "[profile]") {
  Hand hand;
  Profiler profiler(hand.Options(/*most_spans=*/0));
  profiler.Start();

  { const Profiler::Scope nobody(nullptr, ProfileTrack::kData, "(wait for data)"); }
  for (int i = 0; i < 3; ++i) {
    const Profiler::Scope scope(&profiler, ProfileTrack::kData, "(wait for data)");
    hand.ns += 2;
  }

  REQUIRE(profiler.works().size() == 1);
  CHECK(profiler.totals()[0].calls == 3);
  CHECK(profiler.totals()[0].ns == 6);
  CHECK(profiler.spans().empty());
}

TEST_CASE("profile report: the rows add up to the total, and the parts to the whole", "[profile]") {
  Hand hand;
  Profiler profiler(hand.Options());
  const int first =
      profiler.Add({.name = "a", .op = "Gemm", .implementation = "fast", .operations = 60, .product = true});
  const int second =
      profiler.Add({.name = "b", .op = "Gemm", .implementation = "fast", .operations = 40, .product = true});
  const int relu = profiler.Add(
      {.track = ProfileTrack::kBackward, .name = "c", .op = "ReluGrad", .implementation = "own", .bytes = 60});
  profiler.Add({.name = "never", .op = "Add"});
  profiler.Start();
  profiler.Record(first, 0, 10);
  profiler.Record(second, 10, 50);
  profiler.Record(relu, 50, 80);
  hand.ns = 100;
  profiler.Stop();

  const ProfileReport report = ReportByOp(profiler);

  CHECK(SumOfRows(report) == 100);
  CHECK(SumOfRows(ReportByNode(profiler)) == 100);
  REQUIRE(report.rows.size() == 3);
  CHECK(report.rows[0] ==
        ProfileRow{.op = "Gemm", .kernel = "fast", .calls = 2, .ns = 50, .operations = 100, .bytes = 0});
  CHECK(report.rows[2].op == kRestOp);
  CHECK(report.rows[2].ns == 20);
  CHECK(ReportByNode(profiler).rows.size() == 4);
  const std::string table = TableText(report, 2);
  CHECK_THAT(table, Contains("2.0 GFLOP/s") && Contains("2.0 GB/s") && Contains("50.0%") && Contains("20.0%"));
  CHECK_THAT(SharesText(report),
             Contains("matrix products and convolutions 50.0%, other kernels 30.0%") && Contains("the rest 20.0%"));
}

TEST_CASE("profile report: ops on the reference kernels are named with their share, where others are not",
          "[profile]") {
  Hand hand;
  Profiler profiler(hand.Options());
  const int fast = profiler.Add({.name = "a", .op = "Gemm", .implementation = "dnnl:jit"});
  const int slow = profiler.Add({.name = "b", .op = "Einsum", .implementation = "reference"});
  profiler.Start();
  profiler.Record(slow, 0, 25);
  hand.ns = 100;
  profiler.Stop();
  CHECK(SlowText(ReportByOp(profiler)).empty());

  profiler.Start();
  profiler.Record(slow, 100, 125);
  profiler.Record(fast, 125, 175);
  hand.ns = 200;
  profiler.Stop();

  CHECK(SlowText(ReportByOp(profiler)) == "on the reference kernels, which are slow, 25.0%: Einsum 25.0%");
}

}  // namespace
}  // namespace lockstep::worker
