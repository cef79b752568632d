// Rule 11: which pairs of workers have reached each other, and what broke their generations. A pair shares a generation
// only after a test connection between them succeeded, or after both have proved themselves in a crowd.
//
//   1 untested ──Succeeded──▶ 2 reached ──Suspect──▶ 3 in doubt ──Succeeded──▶ 2
//        └──────Failed──────▶ 4 apart ◀──Failed, or suspected again without a generation between──┘
//
//   1, 3  are tested at once; a generation waits a moment for the answer of 3
//   4     is tested again after a pause: a second, or longer each time that a generation failed to form for it
// A worker that names itself as the cause is apart from everybody, with the same pauses.
//
// In a crowd, more than kCrowd workers, nobody tests all pairs: their number grows with the square. There a worker is
// vouched for when it has stepped in a generation or has reached as many others as SampleOf says, and two that are
// vouched for are taken to reach each other until a test or a generation shows otherwise. What a crowd costs, in memory
// and in time, grows with the number of workers and of such exceptions.
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
  static constexpr absl::Duration kPatience = absl::Seconds(10);  // with a test that was asked for
  static constexpr absl::Duration kDoubt = absl::Seconds(5);      // how long a generation waits for a test
  static constexpr absl::Duration kSayEvery = absl::Minutes(1);   // that a pair is apart
  static constexpr size_t kCrowd = 64;                            // workers up to which all pairs are tested

  using Ids = std::set<Incarnation>;

  // The worker is ready to be a member, and counts for the size of the crowd until Forget.
  void Came(const Incarnation& worker) { known_[worker]; }
  void Forget(const Incarnation& gone);

  // ---- what is known
  // May the two share a generation?
  bool Reached(const Incarnation& a, const Incarnation& b) const { return StateOf(a, b) == State::kReached; }
  // Has it been seen that they cannot?
  bool Apart(const Incarnation& a, const Incarnation& b) const { return StateOf(a, b) == State::kApart; }
  // Does it reach every one of `others`, itself left out?
  bool ReachesAll(const Incarnation& worker, const Ids& others) const;
  // Is it apart from one of `others`?
  bool ApartFromSome(const Incarnation& worker, const Ids& others) const;
  // Whether each of `others` either is known to be apart from it or is reached.
  bool KnowsAll(const Incarnation& worker, const Ids& others) const;
  // Will it be known in a moment whether it reaches one of `others`? Names that one, or the worker itself where it has
  // to be vouched for again; none otherwise.
  Incarnation DoubtedAmong(const Incarnation& worker, const Ids& others, absl::Time now) const;
  // Pairs that are apart, at most `most`.
  std::vector<std::pair<Incarnation, Incarnation>> ApartPairs(size_t most) const;
  // The largest set of `candidates` in which every two reach each other, in their order; of equally large ones that
  // with the earlier candidates. In a crowd whose exceptions are many, a large set.
  std::vector<Incarnation> LargestTeam(const std::vector<Incarnation>& candidates) const;
  // False while the worker pauses for what it could not do itself.
  bool MayForm(const Incarnation& worker, absl::Time now) const;
  bool IsCrowd() const { return known_.size() > kCrowd; }

  // ---- tests
  struct Candidate {
    Incarnation id;
    bool at_rest = false;  // a worker that steps is not disturbed: it is tested, and tests nobody
  };
  struct Test {
    size_t tester = 0;
    std::vector<size_t> peers;
  };
  // Who is to test whom now, by index into `ready`: all that may be members, in the order of their coming. Of two at
  // rest the later one tests. They count as asked.
  std::vector<Test> TakeTests(const std::vector<Candidate>& ready, absl::Time now);
  void Asked(const Incarnation& a, const Incarnation& b, absl::Time now);
  void Succeeded(const Incarnation& a, const Incarnation& b);
  // True when people should hear of it: the first time, and now and then.
  bool Failed(const Incarnation& a, const Incarnation& b, absl::Time now);

  // ---- generations
  // They formed a generation, or step in one.
  void FormedTogether(const Ids& members);
  // A generation failed, nobody having died, and `a` names `b` as the cause.
  void Suspect(const Incarnation& a, const Incarnation& b, bool while_forming, absl::Time now);
  // A generation failed to form by what `worker` could not do itself.
  void SuspectItself(const Incarnation& worker, absl::Time now);
  // A generation failed to form and nobody knows why: every pair proves itself again.
  void SuspectAll(const Ids& members, absl::Time now);

  // The next instant at which time alone makes a test due, ends a doubt or ends a worker's pause. None in a crowd:
  // there ticks have to find it.
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
    uint32_t failures = 0;  // generations that failed to form for it, since one did form

    bool IsSettled() const { return state == State::kReached && failures == 0; }
  };
  // What is known of one worker.
  struct Known {
    uint64_t generation = 0;                          // the newest that it formed, by FormedTogether's count; 0: none
    size_t met = 0;                                   // pairs of it that are kReached
    Ids paired;                                       // the others of its entries of pairs_ …
    Ids asked;                                        // … those of them that are untested …
    Ids exceptions;                                   // … and those that are neither untested nor settled
    absl::Time asked_until = absl::InfinitePast();    // an answer is awaited for so long
    absl::Time doubted_until = absl::InfinitePast();  // in a crowd: until it is vouched for again
    uint32_t failures = 0;                            // of its own, in a row …
    absl::Time pause_until = absl::InfinitePast();    // … and how long it pauses for them
  };
  using PairKey = std::pair<Incarnation, Incarnation>;

  static PairKey Key(const Incarnation& a, const Incarnation& b) { return {std::min(a, b), std::max(a, b)}; }
  const Known* Find(const Incarnation& worker) const;
  State StateOf(const Incarnation& a, const Incarnation& b) const;
  // The entry of the pair itself.
  const Pair* PairOf(const Incarnation& a, const Incarnation& b) const;
  bool IsVouchedFor(const Known& known) const;
  bool TestDue(const Incarnation& a, const Incarnation& b, absl::Time now) const;
  // Changes a pair by `change(Pair&)` and what is derived from it.
  template <typename Change>
  void Edit(const Incarnation& a, const Incarnation& b, const Change& change);
  void Erase(const Incarnation& a, const Incarnation& b);
  std::vector<size_t> TestsOf(const std::vector<Candidate>& ready, size_t tester, absl::Time now) const;
  static std::map<Incarnation, size_t> IndexOf(const std::vector<Candidate>& candidates);
  // In a crowd. `index_of`: of `ready`, where `known`, of the tester, has exceptions.
  std::vector<size_t> SampleFor(const std::vector<Candidate>& ready, const std::map<Incarnation, size_t>& index_of,
                                const Known& known, size_t tester, absl::Time now) const;

  std::map<Incarnation, Known> known_;
  std::map<PairKey, Pair> pairs_;
  std::set<PairKey> unsettled_;  // of pairs_, those that are not settled
  Ids paused_;                   // of known_, those that pause or did
  uint64_t generations_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_REACHABILITY_H_
