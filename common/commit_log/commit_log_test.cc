#include "common/commit_log/commit_log.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint_format/sealed.h"
#include "common/commit_log/commit_log_play.h"
#include "common/commit_log/memory_slots.h"

namespace lockstep {
namespace {

using Catch::Contains;

std::string Nonce() {
  static uint64_t last = 0;
  return absl::StrCat("nonce-", ++last);
}

// The head with one change, as a caller makes it.
CommitRecord Next(const CommitLog& log, const std::string& change) {
  CommitRecord next = log.head().value_or(CommitRecord());
  next.set_change(change);
  return next;
}

struct OneLog {
  OneLog() {
    CHECK(absl::IsNotFound(log.Read(messages).status()));
    REQUIRE(log.Append(Next(log, "first")).value() == Appended::kDone);
  }
  // Of each request from now on, in this order; then none.
  void Fail(std::vector<SlotFault> faults) {
    slots.next_fault = [faults = std::move(faults), next = size_t{0}]() mutable {
      return next < faults.size() ? faults[next++] : SlotFault::kNone;
    };
  }

  MemorySlots slots;
  std::vector<std::string> messages;
  CommitLog log{&slots, Nonce, /*kept=*/5};
};

TEST_CASE("commit log: each record follows the one before, and the newest is the head", "[commit_log]") {
  OneLog one;
  for (int i = 0; i < 8; ++i) {
    const std::string before = one.log.head()->nonce();
    REQUIRE(one.log.Append(Next(one.log, absl::StrCat("change ", i))).value() == Appended::kDone);
    CHECK(one.log.head()->follows() == before);
  }
  CommitLog other(&one.slots, Nonce);
  CHECK(other.Read(one.messages).value().change() == "change 7");
  CHECK(other.head()->number() == 9);
  CHECK(one.slots.filled().size() == 5);  // older ones are removed
  CHECK(one.messages.empty());
}

TEST_CASE("commit log: of two that follow one head, one goes on and the other is fenced for good", "[commit_log]") {
  OneLog one;
  CommitLog other(&one.slots, Nonce);
  REQUIRE(other.Read(one.messages).ok());
  REQUIRE(other.Append(Next(other, "taken over")).value() == Appended::kDone);

  CHECK(one.log.Append(Next(one.log, "too late")).value() == Appended::kFenced);
  CHECK(one.log.Append(Next(one.log, "too late")).value() == Appended::kFenced);
  CHECK(one.slots.filled().size() == 2);
  CHECK(other.Append(Next(other, "on")).value() == Appended::kDone);
}

TEST_CASE("commit log: who slept until its next slot was removed is fenced, although the slot is free",
          "[commit_log]") {
  OneLog one;
  CommitLog sleeper(&one.slots, Nonce, 5);
  REQUIRE(sleeper.Read(one.messages).ok());
  for (int i = 0; i < 10; ++i) REQUIRE(one.log.Append(Next(one.log, "on")).value() == Appended::kDone);
  REQUIRE(one.slots.filled().count(2) == 0);

  CHECK(sleeper.Append(Next(sleeper, "wakes")).value() == Appended::kFenced);

  CommitLog reader(&one.slots, Nonce);
  CHECK(reader.Read(one.messages).value().change() == "on");
  CHECK(one.log.Append(Next(one.log, "on")).value() == Appended::kDone);
}

TEST_CASE("commit log: after an error the next append finds out what happened", "[commit_log]") {
  OneLog one;
  SECTION("it did not arrive") {
    one.Fail({SlotFault::kLost});
    REQUIRE_FALSE(one.log.Append(Next(one.log, "second")).ok());
    CHECK(one.log.Append(Next(one.log, "third")).value() == Appended::kDone);
    CHECK(one.log.head()->change() == "third");
    CHECK(one.log.head()->number() == 2);
  }
  SECTION("its answer was lost") {
    one.Fail({SlotFault::kAnswerLost});
    REQUIRE_FALSE(one.log.Append(Next(one.log, "second")).ok());
    CHECK(one.log.Append(Next(one.log, "third")).value() == Appended::kEarlier);
    CHECK(one.log.head()->change() == "second");
    CHECK(one.log.Append(Next(one.log, "third")).value() == Appended::kDone);
  }
  SECTION("it arrived, and the listing failed") {
    one.Fail({SlotFault::kNone, SlotFault::kLost});
    REQUIRE_FALSE(one.log.Append(Next(one.log, "second")).ok());
    CHECK(one.log.Append(Next(one.log, "third")).value() == Appended::kEarlier);
    CHECK(one.log.head()->change() == "second");
  }
  SECTION("it arrives later, in vain") {
    one.Fail({SlotFault::kLate});
    REQUIRE_FALSE(one.log.Append(Next(one.log, "second")).ok());
    REQUIRE(one.log.Append(Next(one.log, "third")).value() == Appended::kDone);
    one.slots.Arrive(1);
    CHECK(one.log.Append(Next(one.log, "fourth")).value() == Appended::kDone);
    CHECK(one.log.head()->number() == 3);
  }
  SECTION("it arrives later, into the free slot") {
    one.Fail({SlotFault::kLate});
    REQUIRE_FALSE(one.log.Append(Next(one.log, "second")).ok());
    one.slots.Arrive(1);
    CHECK(one.log.Append(Next(one.log, "third")).value() == Appended::kEarlier);
    CHECK(one.log.head()->change() == "second");
  }
  SECTION("it arrived twice") {
    one.Fail({SlotFault::kTwice});
    CHECK(one.log.Append(Next(one.log, "second")).value() == Appended::kDone);
    CHECK(one.log.head()->change() == "second");
  }
}

TEST_CASE("commit log: a damaged record is passed over and said, and its slot stays filled", "[commit_log]") {
  OneLog one;
  REQUIRE(one.log.Append(Next(one.log, "second")).value() == Appended::kDone);
  const std::string whole = one.slots.filled()[2];
  const size_t at = GENERATE(size_t{0}, size_t{40}, size_t{200});
  one.slots.filled()[2][at] ^= 4;
  CommitLog reader(&one.slots, Nonce);

  const absl::StatusOr<CommitRecord> read = reader.Read(one.messages);

  REQUIRE(read.ok());
  CHECK(read->change() == "first");
  REQUIRE(one.messages.size() == 1);
  CHECK_THAT(one.messages[0], Contains("slot 2") && Contains("record 1 is used"));
  CHECK(reader.Append(Next(reader, "third")).value() == Appended::kDone);
  CHECK(reader.head()->number() == 3);
  one.slots.filled()[1][at] ^= 4;
  one.slots.filled()[3] = "";
  CHECK(absl::IsDataLoss(reader.Read(one.messages).status()));
}

TEST_CASE("commit log: a record of a newer program is not passed over", "[commit_log]") {
  OneLog one;
  one.slots.filled()[2] = R"({"format_version": 3, "number": 2})";
  CHECK(absl::IsFailedPrecondition(one.log.Read(one.messages).status()));
}

TEST_CASE("commit log: whatever is lost, doubled or late, what was said to be done stays", "[commit_log]") {
  const int seed = GENERATE(range(1, 400));
  CAPTURE(seed);
  MemorySlots slots;
  Draws dice(seed);
  slots.next_fault = [&] { return dice.Below(4) == 0 ? static_cast<SlotFault>(1 + dice.Below(4)) : SlotFault::kNone; };
  PlayCommitLog(
      dice, slots, [&](size_t count) { slots.Arrive(count); },
      [&] { slots.next_fault = [] { return SlotFault::kNone; }; });
}

}  // namespace
}  // namespace lockstep
