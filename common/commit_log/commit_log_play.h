// Plays a random schedule of chiefs that append to one log, over any Slots that can fail on command.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_COMMON_COMMIT_LOG_COMMIT_LOG_PLAY_H_
#define LOCKSTEP_COMMON_COMMIT_LOG_COMMIT_LOG_PLAY_H_

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/sealed.h"
#include "common/commit_log/commit_log.h"
#include "common/commit_log/slots.h"
#include "common/random/random.h"

namespace lockstep {

// Pseudo-random numbers from a seed.
class Draws {
 public:
  explicit Draws(int seed) : random_(RandomStream::For(static_cast<uint64_t>(seed), 0)) {}
  uint64_t Below(uint64_t n) { return random_.At(drawn_++) % n; }

 private:
  const RandomStream random_;
  uint64_t drawn_ = 0;
};

// Several chiefs take over from each other, sleep, and lose requests and answers. Every record that one of them got
// kDone for has to be in the final chain of records, in which each follows the one before. `arrive` lets that many late
// requests arrive; `calm` ends the faults.
inline void PlayCommitLog(Draws& dice, Slots& slots, const std::function<void(size_t)>& arrive,
                          const std::function<void()>& calm) {
  const auto nonce = [] {
    static uint64_t last = 0;
    return absl::StrCat("play-", ++last);
  };
  std::vector<std::string> messages;
  std::vector<std::unique_ptr<CommitLog>> chiefs;
  std::vector<bool> over;
  std::set<std::string> done;
  for (int turn = 0; turn < 120; ++turn) {
    if (dice.Below(10) == 0) arrive(dice.Below(3));
    if (chiefs.empty() || dice.Below(12) == 0) {
      chiefs.push_back(std::make_unique<CommitLog>(&slots, nonce, /*kept=*/1000));
      const auto read = chiefs.back()->Read(messages);
      over.push_back(!read.ok() && !absl::IsNotFound(read.status()));
      continue;
    }
    const size_t who = chiefs.size() - 1 - dice.Below(std::min<size_t>(chiefs.size(), 3));
    if (over[who]) continue;
    CommitLog& chief = *chiefs[who];
    CommitRecord next = chief.head().value_or(CommitRecord());
    next.set_change(absl::StrCat("turn ", turn));
    const absl::StatusOr<Appended> appended = chief.Append(next);
    if (!appended.ok()) continue;
    if (*appended == Appended::kFenced) {
      over[who] = true;
      continue;
    }
    done.insert(chief.head()->nonce());
  }
  calm();
  arrive(1000);
  CommitLog reader(&slots, nonce);
  const absl::StatusOr<CommitRecord> newest = reader.Read(messages);
  if (!newest.ok()) {
    CHECK(done.empty());
    return;
  }
  // Every record follows the one before it, back to the first.
  std::string follows = newest->nonce();
  for (auto number = static_cast<uint64_t>(newest->number()); number >= 1; --number) {
    const absl::StatusOr<std::string> bytes = slots.Get(number);
    REQUIRE(bytes.ok());
    CommitRecord record;
    REQUIRE(ReadSealedJson(*bytes, "", CommitLog::kFormat, &record).ok());
    REQUIRE(record.nonce() == follows);
    done.erase(record.nonce());
    follows = record.follows();
  }
  CHECK(follows.empty());
  CHECK(done.empty());
  CHECK(messages.empty());
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_COMMIT_LOG_PLAY_H_
