#include "common/job/units.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/job/extent.h"
#include "common/job/suggest.h"

namespace lockstep {
namespace {

using Catch::Contains;

int64_t Steps(const std::string& text, int64_t epoch, int64_t batch) {
  const auto amount = ParseAmount(text);
  REQUIRE(amount.ok());
  return StepsOf(*amount, epoch, batch).value();
}

TEST_CASE("extent: amounts are read with their unit and written back the same", "[job]") {
  for (const char* text :
       {"10ep", "0.5ep", "0.001ep", "12.34ep", "500steps", "60000samples", "2h", "1h30m", "250ms", "0steps", "auto"}) {
    const auto amount = ParseAmount(text);
    REQUIRE(amount.ok());
    CHECK(AmountText(*amount) == text);
  }
  CHECK(AmountText(*ParseAmount("90m")) == "1h30m");
  CHECK(AmountText(*ParseAmount("1.500ep")) == "1.5ep");
  for (const char* text : {"",
                           "10",
                           "0",
                           "ep",
                           "steps",
                           "-1steps",
                           "+1steps",
                           "1.5steps",
                           "1 ep",
                           "10epochs",
                           "1e3steps",
                           ".5ep",
                           "0.1234ep",
                           "1.ep",
                           "9999999999999999999ep",
                           "99999999999999999999steps",
                           "inf",
                           "-2h",
                           "2 h",
                           "10x",
                           "9999999999h",
                           "1.2.3ep",
                           "1.+3ep"}) {
    INFO(text);
    CHECK_FALSE(ParseAmount(text).ok());
  }
}

TEST_CASE("extent: epochs and samples round up to whole steps", "[job]") {
  CHECK(Steps("10ep", 60000, 256) == 2344);
  CHECK(Steps("1ep", 60000, 256) == 235);
  CHECK(Steps("1ep", 256, 256) == 1);
  CHECK(Steps("1ep", 257, 256) == 2);
  CHECK(Steps("0.001ep", 60000, 256) == 1);
  CHECK(Steps("0.1ep", 60000, 100) == 60);
  CHECK(Steps("513samples", 60000, 256) == 3);
  CHECK(Steps("7steps", 60000, 256) == 7);
  CHECK(Steps("4000000000000000ep", int64_t{1} << 60, 1) == int64_t{1} << 62);
  CHECK_FALSE(StepsOf(*ParseAmount("2h"), 60000, 256).has_value());
  CHECK(AmountTime(*ParseAmount("2h")) == absl::Hours(2));
  CHECK_FALSE(AmountTime(*ParseAmount("2ep")).has_value());
}

TEST_CASE("units: sizes, times and worker ranges", "[job]") {
  CHECK(job::ParseByteSize("20GiB")->bytes() == int64_t{20} << 30);
  CHECK(job::ParseByteSize("1.5KB")->bytes() == 1500);
  CHECK(job::ParseByteSize("7B")->bytes() == 7);
  CHECK(job::ParseByteSize("4096")->bytes() == 4096);
  CHECK(job::ByteSizeText(*job::ParseByteSize("2048MiB")) == "2GiB");
  CHECK(job::ByteSizeText(*job::ParseByteSize("1500")) == "1500");
  CHECK(job::ByteSizeText(*job::ParseByteSize("0")) == "0");
  for (const char* text : {"", "GiB", "-1", "1 GiB", "1gib", "nan", "9999999999TiB", "1e400"}) {
    INFO(text);
    CHECK_FALSE(job::ParseByteSize(text).ok());
  }

  CHECK(*job::ParseTime("90s") == absl::Seconds(90));
  CHECK(job::ToDuration(job::FromDuration(absl::Milliseconds(1250))) == absl::Milliseconds(1250));
  for (const char* text : {"", "5", "-5s", "+5s", "inf", "5 s", "s"}) CHECK_FALSE(job::ParseTime(text).ok());

  CHECK(job::ParseWorkerRange("1:8")->max() == 8);
  CHECK(job::WorkerRangeText(*job::ParseWorkerRange("4")) == "4");
  CHECK(job::WorkerRangeText(*job::ParseWorkerRange("1:8")) == "1:8");
  for (const char* text : {"", ":", "1:", ":8", "8:1", "a", "1:2:3", "1.5"})
    CHECK_FALSE(job::ParseWorkerRange(text).ok());
}

TEST_CASE("units: a part of a GPU's memory is grow, a fraction or a size with its unit", "[job]") {
  CHECK(job::ParseGpuMemory("grow")->has_grow());
  CHECK(job::ParseGpuMemory("0.4")->fraction() == 0.4);
  CHECK(job::ParseGpuMemory("1")->fraction() == 1);
  CHECK(job::ParseGpuMemory("8GiB")->bytes() == int64_t{8} << 30);
  CHECK(job::GpuMemoryBytes(*job::ParseGpuMemory("grow"), 1000) == 0);
  CHECK(job::GpuMemoryBytes(*job::ParseGpuMemory("0.25"), 1000) == 250);
  CHECK(job::GpuMemoryBytes(*job::ParseGpuMemory("7B"), 1000) == 7);
  for (const char* text : {"grow", "0.4", "1", "8GiB", "1500B", "7812500KiB"}) {
    CHECK(job::GpuMemoryText(*job::ParseGpuMemory(text)) == text);
  }

  const auto error = [](const char* text) { return std::string(job::ParseGpuMemory(text).status().message()); };
  for (const char* text : {"", "all", "Grow", "-0.5", "nan", ".5"}) CHECK_THAT(error(text), Contains("expected grow"));
  for (const char* text : {"0", "0.0", "1.01", "8", "4096"})
    CHECK_THAT(error(text), Contains("has a unit such as GiB"));
  CHECK_THAT(error("40%"), Contains("expected a fraction such as 0.4, found '40%'"));
  CHECK_THAT(error("0GiB"), Contains("must be above 0"));
  CHECK_THAT(error("8 GiB"), Contains("expected a size such as"));
}

TEST_CASE("suggest: near names are offered, far ones are not", "[job]") {
  CHECK(job::EditDistance("", "abc") == 3);
  CHECK(job::EditDistance("kitten", "sitting") == 3);
  CHECK(job::EditDistance("ab", "ba") == 1);
  CHECK(job::DidYouMean("sede", {"seed", "name"}) == "; did you mean 'seed'?");
  CHECK(job::DidYouMean("colour", {"seed", "name"}).empty());
  CHECK(job::DidYouMean("", {"a"}).empty());
  CHECK(job::DidYouMean(std::string(1000, 'a'), {std::string(1000, 'b')}).empty());
}

}  // namespace
}  // namespace lockstep
