// What faults of requests do to a commit log in an object store. What its slots keep without faults:
// common/commit_log/slots_test.cc.
#include "common/object_store/object_slots.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/commit_log/commit_log_play.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/s3_on_fake.h"

namespace lockstep {
namespace {

TEST_CASE("object slots: a log keeps what was said to be done, whatever is lost, doubled or late", "[object_store]") {
  const int seed = GENERATE(range(1, 120));
  CAPTURE(seed);
  MemoryObjectStore store;
  ObjectSlots slots(&store, "log");
  Draws dice(seed);
  store.next_fault = [&] {
    return dice.Below(4) == 0 ? static_cast<ObjectFault>(1 + dice.Below(kObjectFaults - 1)) : ObjectFault::kNone;
  };
  PlayCommitLog(
      dice, slots, [&](size_t count) { store.Arrive(count); },
      [&] { store.next_fault = [] { return ObjectFault::kNone; }; });
}

TEST_CASE("object slots: a log in a bucket keeps what was said to be done, whatever its server answers",
          "[object_store]") {
  const int seed = GENERATE(range(1, 120));
  CAPTURE(seed);
  S3OnFake s3;
  s3.fake.page_keys = 1000;
  ObjectSlots slots(s3.store.get(), "log");
  Draws dice(seed);
  const uint64_t faults = 2 + dice.Below(18);  // of twenty requests
  s3.fake.next_fault = [&dice, faults] {
    return dice.Below(20) < faults ? static_cast<S3Fault>(1 + dice.Below(kS3Faults - 1)) : S3Fault::kNone;
  };
  PlayCommitLog(
      dice, slots, [](size_t) {}, [&] { s3.fake.next_fault = [] { return S3Fault::kNone; }; });
}

TEST_CASE("object slots: objects of others among the slots are passed over", "[object_store]") {
  MemoryObjectStore store;
  ObjectSlots slots(&store, "log");
  for (const char* name : {"log/.hidden", "log/0", "log/notes.txt", "log/sub/0", "other"}) {
    REQUIRE(store.Put(name, "x", PutCondition::kNone).ok());
  }
  for (const uint64_t number : {1, 2, 3}) REQUIRE(slots.Create(number, "x").ok());
  CHECK(slots.Newest(2).value() == std::vector<uint64_t>{3, 2});
  CHECK(slots.Newest(9).value() == std::vector<uint64_t>{3, 2, 1});
  CHECK(slots.Describe(1) == "memory:log/09999999999999999998");
}

TEST_CASE("object slots: a server that ignores the condition replaces records; only a probe can tell",
          "[object_store]") {
  S3OnFake s3;
  s3.fake.conditions = FakeS3::Conditions::kIgnored;
  ObjectSlots slots(s3.store.get(), "log");
  REQUIRE(slots.Create(1, "first").ok());
  CHECK(slots.Create(1, "second").ok());
}

}  // namespace
}  // namespace lockstep
