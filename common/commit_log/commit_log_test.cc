#include "common/commit_log/commit_log.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint_format/sealed.h"
#include "common/commit_log/memory_slots.h"
#include "common/random/random.h"

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

// Several chiefs that take over from each other, sleep, and lose requests and answers. What one of them was told is
// done stands in the chain of records, each of which follows the one before.
TEST_CASE("commit log: whatever is lost, doubled or late, what was said to be done stays", "[commit_log]") {
  const int seed = GENERATE(range(1, 400));
  CAPTURE(seed);
  const RandomStream random = RandomStream::For(static_cast<uint64_t>(seed), 0);
  uint64_t drawn = 0;
  const auto below = [&](uint64_t n) { return random.At(drawn++) % n; };
  MemorySlots slots;
  bool faults = true;
  slots.next_fault = [&] { return faults && below(4) == 0 ? static_cast<SlotFault>(1 + below(4)) : SlotFault::kNone; };
  std::vector<std::string> messages;
  std::vector<std::unique_ptr<CommitLog>> chiefs;
  std::vector<bool> over;
  std::set<std::string> done;
  for (int turn = 0; turn < 120; ++turn) {
    if (below(10) == 0) slots.Arrive(below(3));
    if (chiefs.empty() || below(12) == 0) {
      chiefs.push_back(std::make_unique<CommitLog>(&slots, Nonce, /*kept=*/1000));
      over.push_back(false);
      const auto read = chiefs.back()->Read(messages);
      over.back() = !read.ok() && !absl::IsNotFound(read.status());
      continue;
    }
    const size_t who = chiefs.size() - 1 - below(std::min<size_t>(chiefs.size(), 3));
    if (over[who]) continue;
    CommitLog& chief = *chiefs[who];
    const absl::StatusOr<Appended> appended = chief.Append(Next(chief, absl::StrCat("turn ", turn)));
    if (!appended.ok()) continue;
    if (*appended == Appended::kFenced) {
      over[who] = true;
      continue;
    }
    done.insert(chief.head()->nonce());
  }
  faults = false;
  slots.Arrive(1000);
  CommitLog reader(&slots, Nonce);
  const absl::StatusOr<CommitRecord> newest = reader.Read(messages);
  if (!newest.ok()) {
    CHECK(done.empty());
    return;
  }
  // Every record follows the one before it, back to the first.
  std::string follows = newest->nonce();
  for (auto number = static_cast<uint64_t>(newest->number()); number >= 1; --number) {
    REQUIRE(slots.filled().count(number) == 1);
    CommitRecord record;
    REQUIRE(ReadSealedJson(slots.filled()[number], "", CommitLog::kFormat, &record).ok());
    REQUIRE(record.nonce() == follows);
    done.erase(record.nonce());
    follows = record.follows();
  }
  CHECK(follows.empty());
  CHECK(done.empty());
  CHECK(messages.empty());
}

}  // namespace
}  // namespace lockstep
