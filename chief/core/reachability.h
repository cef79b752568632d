// Which pairs of workers can reach each other, and which pairs broke generations (rule 11). Two workers share a
// generation only after a test connection between them succeeded, or after both have proved themselves in a crowd.
//
//   1 untested ──Succeeded──▶ 2 reached ──Suspect──▶ 3 in doubt ──Succeeded──▶ 2
//        └──────Failed──────▶ 4 apart ◀──Failed, or suspected again without a generation between──┘
//
//   1, 3  are tested at once; a generation waits a moment for the result of 3
//   4     is tested again after a pause: a second, or longer each time that the pair keeps a generation from forming
// A worker that names itself as the cause is apart from all others, with the same pauses.
//
// In a crowd of more than kCrowd workers not all pairs are tested, as their number grows with the square. There a
// worker is vouched for once it has stepped in a generation or has reached SampleOf others, and two such workers are
// taken to reach each other until a test or a generation shows otherwise. The cost of a crowd, in memory and time,
// grows with the number of workers and of these exceptions.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_REACHABILITY_H_
#define LOCKSTEP_CHIEF_CORE_REACHABILITY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class Reachability {
 public:
  static constexpr absl::Duration kRetest = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Minutes(1);
  static constexpr absl::Duration kPatience = absl::Seconds(10);  // how long the result of a test is awaited
  static constexpr absl::Duration kDoubt = absl::Seconds(5);      // how long a generation waits for a test
  static constexpr absl::Duration kSayEvery = absl::Minutes(1);   // how often people hear that a pair is apart
  static constexpr size_t kCrowd = 64;                            // workers up to which all pairs are tested

  using Ids = std::set<Incarnation>;

  // The worker is ready to be a member, and counts for the size of the crowd until Forget.
  void Came(const Incarnation& worker) { known_[worker]; }
  void Forget(const Incarnation& gone);

  // ---- queries
  // Whether the two may share a generation.
  bool Reached(const Incarnation& a, const Incarnation& b) const { return StateOf(a, b) == State::kReached; }
  // Whether it is known that they cannot.
  bool Apart(const Incarnation& a, const Incarnation& b) const { return StateOf(a, b) == State::kApart; }
  // Whether it reaches all of `others` (itself excepted).
  bool ReachesAll(const Incarnation& worker, const Ids& others) const;
  // Whether it is apart from one of `others`.
  bool ApartFromSome(const Incarnation& worker, const Ids& others) const;
  // Whether it is known of each of `others` that it is reached or apart. In a crowd: whether the worker is vouched for.
  bool KnowsAll(const Incarnation& worker, const Ids& others) const;
  // The worker whose reachability from `worker` a pending test will soon decide, out of `others`; `worker` itself if it
  // must be vouched for again; none if no test is awaited.
  Incarnation DoubtedAmong(const Incarnation& worker, const Ids& others, absl::Time now) const;
  // At most `most` pairs that are apart.
  std::vector<std::pair<Incarnation, Incarnation>> ApartPairs(size_t most) const;
  // The largest set of `candidates` in which every two reach each other, in their order; of equally large ones the one
  // with the earlier candidates. In a crowd with many exceptions the set may not be the largest.
  std::vector<Incarnation> LargestTeam(const std::vector<Incarnation>& candidates) const;
  // False while the worker pauses because its own part failed.
  bool MayForm(const Incarnation& worker, absl::Time now) const;
  bool IsCrowd() const { return known_.size() > kCrowd; }

  // ---- tests
  struct Candidate {
    Incarnation id;
    bool at_rest = false;  // a worker that steps is tested by others, and tests nobody
  };
  struct Test {
    size_t tester = 0;
    std::vector<size_t> peers;
  };
  // The tests that are due now, by index into `ready`, which lists all workers that may be members, in order of
  // arrival. Of two at rest the later one tests. The pairs count as asked.
  std::vector<Test> TakeTests(const std::vector<Candidate>& ready, absl::Time now);
  void Asked(const Incarnation& a, const Incarnation& b, absl::Time now);
  void Succeeded(const Incarnation& a, const Incarnation& b);
  // A test failed. Returns true if people should hear of it: the first time, and then from time to time.
  bool Failed(const Incarnation& a, const Incarnation& b, absl::Time now);

  // ---- generations
  // `members` formed a generation, or step in one.
  void FormedTogether(const Ids& members);
  // A generation failed although no member died, and `a` names `b` as the cause.
  void Suspect(const Incarnation& a, const Incarnation& b, bool while_forming, absl::Time now);
  // A generation failed to form because the part of `worker` itself failed.
  void SuspectItself(const Incarnation& worker, absl::Time now);
  // A generation failed to form for an unknown reason: every pair is tested again.
  void SuspectAll(const Ids& members, absl::Time now);

  // The next instant at which time alone makes a test due, ends a doubt or ends a worker's pause. Always infinite in a
  // crowd, where the regular ticks find it.
  absl::Time NextDeadline(absl::Time now) const;

  // The `nth` pause in a row.
  static absl::Duration Pause(uint32_t nth) {
    return std::min(kRetest * (int64_t{1} << std::min<uint32_t>(nth - 1, 10)), kLongestPause);
  }
  // How many of `count` others a worker in a crowd must reach to be vouched for.
  static size_t SampleOf(size_t count);

 private:
  enum class State : uint8_t { kUntested, kReached, kDoubted, kApart };
  struct Pair {
    State state = State::kUntested;
    absl::Time next_test = absl::InfinitePast();
    absl::Time doubted_until = absl::InfinitePast();
    absl::Time say_again = absl::InfinitePast();
    uint32_t failures = 0;  // generations that failed to form because of this pair since one formed

    bool IsSettled() const { return state == State::kReached && failures == 0; }
  };
  // What is known of one worker.
  struct Known {
    uint64_t generation = 0;  // the newest generation that it formed, by FormedTogether's count; 0: none
    size_t met = 0;           // pairs of it that are kReached
    Ids paired;               // workers with which it has an entry in pairs_
    Ids asked;                // those of `paired` that are untested
    Ids exceptions;           // those of `paired` that are neither untested nor settled
    absl::Time asked_until = absl::InfinitePast();    // until when their answers are awaited
    absl::Time doubted_until = absl::InfinitePast();  // in a crowd: until it is vouched for again
    uint32_t failures = 0;                            // failures of its own part, in a row
    absl::Time pause_until = absl::InfinitePast();    // until when it pauses for them
  };
  using PairKey = std::pair<Incarnation, Incarnation>;

  static PairKey Key(const Incarnation& a, const Incarnation& b) { return {std::min(a, b), std::max(a, b)}; }
  const Known* Find(const Incarnation& worker) const;
  State StateOf(const Incarnation& a, const Incarnation& b) const;
  // The entry of the pair; null if there is none.
  const Pair* PairOf(const Incarnation& a, const Incarnation& b) const;
  bool IsVouchedFor(const Known& known) const;
  bool TestDue(const Incarnation& a, const Incarnation& b, absl::Time now) const;
  // Applies `change(Pair&)` to a pair and updates what is derived from it.
  template <typename Change>
  void Edit(const Incarnation& a, const Incarnation& b, const Change& change);
  void Erase(const Incarnation& a, const Incarnation& b);
  std::vector<size_t> TestsOf(const std::vector<Candidate>& ready, size_t tester, absl::Time now) const;
  static std::map<Incarnation, size_t> IndexOf(const std::vector<Candidate>& candidates);
  // In a crowd: the peers that `tester` is to test now. `index_of` maps the workers of `ready` to their indexes; it may
  // be empty if `known`, the entry of the tester, has no exceptions.
  std::vector<size_t> SampleFor(const std::vector<Candidate>& ready, const std::map<Incarnation, size_t>& index_of,
                                const Known& known, size_t tester, absl::Time now) const;

  std::map<Incarnation, Known> known_;
  std::map<PairKey, Pair> pairs_;
  std::set<PairKey> unsettled_;  // keys of pairs_ that are not settled
  Ids paused_;                   // keys of known_ that pause or did
  uint64_t generations_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_REACHABILITY_H_
