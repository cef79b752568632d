#include "common/liveness/activity.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/queue.h"

namespace lockstep::liveness {
namespace {

// The activities of the thread of this name; none where there is no such thread.
const ThreadActivity* Named(const std::vector<ThreadActivity>& all, absl::string_view name) {
  for (const ThreadActivity& one : all) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

TEST_CASE("activity: a thread shows what it does, the outermost first, until that ends", "[liveness]") {
  NameThread("shows");
  const auto doing = [] {
    const std::vector<ThreadActivity> all = ReadActivities(OwnPage(), MonotonicNs());
    const ThreadActivity* const own = Named(all, "shows");
    REQUIRE(own != nullptr);
    return own->doing;
  };
  CHECK(doing().empty());

  const NowDoing step("step ", 120);
  {
    const NowDoing node("node '", std::string("fc1"), "' of ", uint64_t{7});
    REQUIRE(doing().size() == 2);
    CHECK(doing()[0].text == "step 120");
    CHECK(doing()[1].text == "node 'fc1' of 7");
    CHECK(doing()[1].lasts >= absl::ZeroDuration());
  }

  REQUIRE(doing().size() == 1);
  CHECK(doing()[0].text == "step 120");
}

TEST_CASE("activity: the age counts from the beginning, by the clock that the reader names", "[liveness]") {
  NameThread("ages");
  const int64_t before = MonotonicNs();
  const NowDoing read("reading data shard 3");
  const int64_t after = MonotonicNs();

  const std::vector<ThreadActivity> all = ReadActivities(OwnPage(), after + 9'000'000'000);

  const ThreadActivity* const own = Named(all, "ages");
  REQUIRE(own != nullptr);
  REQUIRE(own->doing.size() == 1);
  CHECK(own->doing[0].lasts >= absl::Seconds(9));
  CHECK(own->doing[0].lasts <= absl::Seconds(9) + absl::Nanoseconds(after - before));
}

TEST_CASE("activity: what stands is named innermost first, and only when it stands for long enough", "[liveness]") {
  NameThread("stands");
  const NowDoing step("step 3");
  const NowDoing node("node 'a'");

  CHECK_THAT(LongActivityOf("stands", absl::ZeroDuration()),
             Catch::StartsWith("node 'a' for ") && Catch::Contains(", in step 3 for "));
  CHECK(LongActivityOf("stands", absl::Hours(1)).empty());
  CHECK(LongActivityOf("no such thread", absl::ZeroDuration()).empty());
  CHECK(DoingText({{"step 3", absl::Milliseconds(12345)}, {"node 'a'", absl::Milliseconds(9876)}}) ==
        "node 'a' for 9.876s, in step 3 for 12s");
  CHECK(DoingText({}).empty());
}

TEST_CASE("activity: notes that lie too deep or are too long are cut and end in order", "[liveness]") {
  NameThread("deep");
  const std::string word(500, 'x');
  {
    const NowDoing a(word), b("b"), c("c"), d("d"), e("e"), f("f");
    const std::vector<ThreadActivity> all = ReadActivities(OwnPage(), MonotonicNs());
    const ThreadActivity* const own = Named(all, "deep");
    REQUIRE(own != nullptr);
    REQUIRE(own->doing.size() == kMostNotes);
    CHECK(own->doing[0].text == std::string(SharedText<14>::kBytes, 'x'));
    CHECK(own->doing.back().text == "d");
  }

  CHECK(LongActivityOf("deep", absl::ZeroDuration()).empty());
}

TEST_CASE("activity: the slot of a thread that ended is free again", "[liveness]") {
  for (size_t i = 0; i < 3 * kMostThreads; ++i) {
    std::thread([] {
      NameThread("short");
      const NowDoing work("something");
    }).join();
  }

  const std::vector<ThreadActivity> all = ReadActivities(OwnPage(), MonotonicNs());
  CHECK(Named(all, "short") == nullptr);
  CHECK(OwnSlot() != nullptr);
}

TEST_CASE("activity: threads beyond the limit say nothing and work on", "[liveness]") {
  BoundedQueue<int> begun(2 * kMostThreads);
  BoundedQueue<int> end(1);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kMostThreads + 8; ++i) {
    threads.emplace_back([&] {
      const NowDoing work("one of many");
      begun.Push(1);
      end.Pop();
    });
  }
  for (size_t i = 0; i < threads.size(); ++i) begun.Pop();

  CHECK(ReadActivities(OwnPage(), MonotonicNs()).size() == kMostThreads);

  end.Close();
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("activity: a text may be read while it is written", "[liveness]") {
  auto text = std::make_unique<SharedText<14>>();
  text->Set(std::string(100, 'a'));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (bool a = false; !stop; a = !a) text->Set(std::string(100, a ? 'a' : 'b'));
  });

  bool as_written = true;
  for (int i = 0; i < 20000; ++i) {
    const std::string seen = text->Get();
    as_written = as_written && seen.size() == 100 && seen.find_first_not_of("ab") == std::string::npos;
  }
  stop = true;
  writer.join();

  CHECK(as_written);
  CHECK(text->Get() == std::string(100, text->Get()[0]));
}

}  // namespace
}  // namespace lockstep::liveness
