#include "chief/core/reachability.h"

#include <bit>
#include <iterator>

#include "chief/core/largest_team.h"

namespace lockstep::chief {

size_t Reachability::SampleOf(size_t count) { return std::min<size_t>(count, 2 * std::bit_width(count)); }

const Reachability::Known* Reachability::Find(const Incarnation& worker) const {
  const auto found = known_.find(worker);
  return found == known_.end() ? nullptr : &found->second;
}

const Reachability::Pair* Reachability::PairOf(const Incarnation& a, const Incarnation& b) const {
  const auto found = pairs_.find(Key(a, b));
  return found == pairs_.end() ? nullptr : &found->second;
}

bool Reachability::IsVouchedFor(const Known& known) const {
  return known.generation != 0 || known.met >= SampleOf(known_.size() - 1);
}

Reachability::State Reachability::StateOf(const Incarnation& a, const Incarnation& b) const {
  const Pair* pair = PairOf(a, b);
  if (pair != nullptr && pair->state != State::kUntested) return pair->state;
  const Known* of_a = Find(a);
  const Known* of_b = Find(b);
  if (of_a == nullptr || of_b == nullptr) return State::kUntested;
  const bool stepped = of_a->generation != 0 && of_a->generation == of_b->generation;
  const bool vouched = IsCrowd() && IsVouchedFor(*of_a) && IsVouchedFor(*of_b);
  return stepped || vouched ? State::kReached : State::kUntested;
}

// ---- what is known

bool Reachability::ReachesAll(const Incarnation& worker, const Ids& others) const {
  if (others.size() <= kCrowd) {
    return std::all_of(others.begin(), others.end(),
                       [&](const Incarnation& other) { return other == worker || Reached(worker, other); });
  }
  const Known* known = Find(worker);
  return known != nullptr && IsVouchedFor(*known) &&
         std::none_of(known->exceptions.begin(), known->exceptions.end(),
                      [&](const Incarnation& other) { return others.count(other) != 0 && !Reached(worker, other); });
}

bool Reachability::ApartFromSome(const Incarnation& worker, const Ids& others) const {
  const Known* known = Find(worker);
  return known != nullptr &&
         std::any_of(known->exceptions.begin(), known->exceptions.end(),
                     [&](const Incarnation& other) { return others.count(other) != 0 && Apart(worker, other); });
}

bool Reachability::KnowsAll(const Incarnation& worker, const Ids& others) const {
  if (others.size() > kCrowd) {
    const Known* known = Find(worker);
    return known != nullptr && IsVouchedFor(*known);
  }
  return std::all_of(others.begin(), others.end(), [&](const Incarnation& other) {
    const State state = StateOf(worker, other);
    return other == worker || state == State::kApart || state == State::kReached;
  });
}

Incarnation Reachability::DoubtedAmong(const Incarnation& worker, const Ids& others, absl::Time now) const {
  const Known* known = Find(worker);
  if (known == nullptr) return {};
  if (now < known->doubted_until && !IsVouchedFor(*known)) return worker;
  for (const Incarnation& other : known->exceptions) {
    if (other == worker || others.count(other) == 0) continue;
    const Pair* pair = PairOf(worker, other);
    if (pair->state == State::kDoubted && now < pair->doubted_until) return other;
  }
  return {};
}

std::vector<std::pair<Incarnation, Incarnation>> Reachability::ApartPairs(size_t most) const {
  std::vector<std::pair<Incarnation, Incarnation>> apart;
  for (const PairKey& key : unsettled_) {
    if (apart.size() == most) break;
    if (pairs_.at(key).state == State::kApart) apart.push_back(key);
  }
  return apart;
}

std::vector<Incarnation> Reachability::LargestTeam(const std::vector<Incarnation>& candidates) const {
  const auto largest_of = [this](const std::vector<Incarnation>& some) {
    std::vector<Incarnation> team;
    for (const size_t index :
         chief::LargestTeam(some.size(), [&](size_t a, size_t b) { return Reached(some[a], some[b]); })) {
      team.push_back(some[index]);
    }
    return team;
  };
  if (candidates.size() <= kCrowd) return largest_of(candidates);
  // Who is vouched for and has no exception among them is in every largest team.
  std::vector<Incarnation> vouched;
  Ids excepted;
  for (const Incarnation& candidate : candidates) {
    const Known* known = Find(candidate);
    if (known == nullptr || !IsVouchedFor(*known)) continue;
    vouched.push_back(candidate);
    if (!known->exceptions.empty()) excepted.insert(candidate);
  }
  std::erase_if(excepted, [&, all = excepted](const Incarnation& candidate) {
    const Ids& others = Find(candidate)->exceptions;
    return std::none_of(others.begin(), others.end(),
                        [&](const Incarnation& other) { return all.count(other) != 0 && !Reached(candidate, other); });
  });
  if (excepted.empty()) return vouched;
  std::vector<Incarnation> rest;
  std::copy_if(vouched.begin(), vouched.end(), std::back_inserter(rest),
               [&](const Incarnation& candidate) { return excepted.count(candidate) != 0; });
  for (const Incarnation& candidate : largest_of(rest)) excepted.erase(candidate);
  std::erase_if(vouched, [&](const Incarnation& candidate) { return excepted.count(candidate) != 0; });
  return vouched;
}

bool Reachability::MayForm(const Incarnation& worker, absl::Time now) const {
  if (paused_.empty()) return true;
  const Known* known = Find(worker);
  return known == nullptr || now >= known->pause_until;
}

// ---- changes

template <typename Change>
void Reachability::Edit(const Incarnation& a, const Incarnation& b, const Change& change) {
  Pair& pair = pairs_[Key(a, b)];
  const bool was_reached = pair.state == State::kReached;
  change(pair);
  const bool is_reached = pair.state == State::kReached;
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    Known& known = known_[one];
    known.paired.insert(other);
    if (is_reached && !was_reached) ++known.met;
    if (!is_reached && was_reached) --known.met;
    known.asked.erase(other);
    known.exceptions.erase(other);
    if (pair.state == State::kUntested) {
      known.asked.insert(other);
      known.asked_until = std::max(known.asked_until, pair.next_test);
    } else if (!pair.IsSettled()) {
      known.exceptions.insert(other);
    }
  }
  if (pair.IsSettled()) {
    unsettled_.erase(Key(a, b));
  } else {
    unsettled_.insert(Key(a, b));
  }
}

void Reachability::Erase(const Incarnation& a, const Incarnation& b) {
  const auto found = pairs_.find(Key(a, b));
  if (found == pairs_.end()) return;
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    Known& known = known_[one];
    known.paired.erase(other);
    known.asked.erase(other);
    known.exceptions.erase(other);
    if (found->second.state == State::kReached) --known.met;
  }
  unsettled_.erase(found->first);
  pairs_.erase(found);
}

void Reachability::Forget(const Incarnation& gone) {
  const auto found = known_.find(gone);
  if (found == known_.end()) return;
  for (const Incarnation& other : Ids(found->second.paired)) Erase(gone, other);
  known_.erase(gone);
  paused_.erase(gone);
}

// ---- tests

bool Reachability::TestDue(const Incarnation& a, const Incarnation& b, absl::Time now) const {
  if (!MayForm(a, now) || !MayForm(b, now) || StateOf(a, b) == State::kReached) return false;
  const Pair* pair = PairOf(a, b);
  return pair == nullptr || now >= pair->next_test;
}

std::map<Incarnation, size_t> Reachability::IndexOf(const std::vector<Candidate>& candidates) {
  std::map<Incarnation, size_t> index_of;
  for (size_t index = 0; index < candidates.size(); ++index) index_of.emplace(candidates[index].id, index);
  return index_of;
}

std::vector<Reachability::Test> Reachability::TakeTests(const std::vector<Candidate>& ready, absl::Time now) {
  const bool crowd = IsCrowd();
  std::map<Incarnation, size_t> index_of;  // of `ready`: made when the first worker with exceptions needs it
  std::vector<Test> tests;
  for (size_t tester = 0; tester < ready.size(); ++tester) {
    if (!ready[tester].at_rest) continue;
    Test test{tester, {}};
    if (crowd) {
      const Known* known = Find(ready[tester].id);
      if (known == nullptr || (IsVouchedFor(*known) && known->exceptions.empty())) continue;
      if (index_of.empty() && !known->exceptions.empty()) index_of = IndexOf(ready);
      test.peers = SampleFor(ready, index_of, *known, tester, now);
    } else {
      test.peers = TestsOf(ready, tester, now);
    }
    for (const size_t peer : test.peers) Asked(ready[tester].id, ready[peer].id, now);
    if (!test.peers.empty()) tests.push_back(std::move(test));
  }
  return tests;
}

std::vector<size_t> Reachability::TestsOf(const std::vector<Candidate>& ready, size_t tester, absl::Time now) const {
  std::vector<size_t> due;
  for (size_t peer = 0; peer < ready.size(); ++peer) {
    const bool tests_me = ready[peer].at_rest && peer > tester;
    if (peer != tester && !tests_me && TestDue(ready[tester].id, ready[peer].id, now)) due.push_back(peer);
  }
  return due;
}

// What failed or is in doubt, as it falls due; then as many others as are missing until the worker is vouched for:
// those at distances of powers of two first, then any.
std::vector<size_t> Reachability::SampleFor(const std::vector<Candidate>& ready,
                                            const std::map<Incarnation, size_t>& index_of, const Known& known,
                                            size_t tester, absl::Time now) const {
  const Incarnation& id = ready[tester].id;
  std::vector<size_t> due;
  for (const Incarnation& other : known.exceptions) {
    const auto peer = index_of.find(other);
    if (peer != index_of.end() && TestDue(id, other, now)) due.push_back(peer->second);
  }
  // A worker that has not answered for too long is asked again, or another one is.
  const size_t under_way = now < known.asked_until ? known.asked.size() : 0;
  const size_t needed = SampleOf(known_.size() - 1);
  const size_t have = known.met + under_way;
  if (IsVouchedFor(known) || have >= needed) return due;
  size_t missing = needed - have;
  std::set<size_t> chosen(due.begin(), due.end());
  const auto ask = [&](size_t peer) {
    if (missing == 0 || peer == tester || known.exceptions.count(ready[peer].id) != 0) return;
    if (!TestDue(id, ready[peer].id, now) || !chosen.insert(peer).second) return;
    due.push_back(peer);
    --missing;
  };
  const size_t count = ready.size();
  for (size_t distance = 1; distance < count; distance *= 2) {
    ask((tester + distance) % count);
    ask((tester + count - distance) % count);
  }
  for (size_t distance = 1; distance < count && missing != 0; ++distance) ask((tester + distance) % count);
  return due;
}

void Reachability::Asked(const Incarnation& a, const Incarnation& b, absl::Time now) {
  Edit(a, b, [&](Pair& pair) { pair.next_test = now + kPatience; });
}

void Reachability::Succeeded(const Incarnation& a, const Incarnation& b) {
  Edit(a, b, [](Pair& pair) {
    pair.state = State::kReached;
    pair.say_again = absl::InfinitePast();
  });
}

bool Reachability::Failed(const Incarnation& a, const Incarnation& b, absl::Time now) {
  bool say = false;
  Edit(a, b, [&](Pair& pair) {
    pair.state = State::kApart;
    pair.next_test = now + kRetest;
    say = now >= pair.say_again;
    if (say) pair.say_again = now + kSayEvery;
  });
  return say;
}

// ---- generations

void Reachability::FormedTogether(const Ids& members) {
  ++generations_;
  for (const Incarnation& member : members) {
    Known& known = known_[member];
    known.generation = generations_;
    known.doubted_until = known.pause_until = absl::InfinitePast();
    known.failures = 0;
    paused_.erase(member);
    for (const Incarnation& other : Ids(known.exceptions)) {
      if (members.count(other) != 0) Edit(member, other, [](Pair& pair) { pair = Pair{State::kReached}; });
    }
  }
  if (members.size() > kCrowd) return;
  // Of few, each pair is kept: it outlives the next generation of one of them.
  for (auto one = members.begin(); one != members.end(); ++one) {
    for (auto other = std::next(one); other != members.end(); ++other) {
      if (const Pair* pair = PairOf(*one, *other); pair != nullptr && pair->IsSettled()) continue;
      Edit(*one, *other, [](Pair& pair) { pair = Pair{State::kReached}; });
    }
  }
}

void Reachability::Suspect(const Incarnation& a, const Incarnation& b, bool while_forming, absl::Time now) {
  Edit(a, b, [&](Pair& pair) {
    pair.failures += while_forming ? 1 : 0;
    if (pair.failures >= 2) {
      // Tests succeed although generations fail: only a pause is left to try.
      pair.state = State::kApart;
      pair.next_test = now + Pause(pair.failures - 1);
    } else {
      pair.state = State::kDoubted;
      pair.next_test = now;
      pair.doubted_until = now + kDoubt;
    }
  });
}

void Reachability::SuspectItself(const Incarnation& worker, absl::Time now) {
  Known& known = known_[worker];
  known.pause_until = now + Pause(++known.failures);
  paused_.insert(worker);
  for (const Incarnation& other : Ids(known.paired)) {
    Edit(worker, other, [&](Pair& pair) {
      pair.state = State::kApart;
      pair.next_test = known.pause_until;
    });
  }
}

void Reachability::SuspectAll(const Ids& members, absl::Time now) {
  if (members.size() <= kCrowd) {
    for (auto one = members.begin(); one != members.end(); ++one) {
      for (auto other = std::next(one); other != members.end(); ++other) Suspect(*one, *other, false, now);
    }
    return;
  }
  for (const Incarnation& member : members) {
    Known& known = known_[member];
    known.generation = 0;
    known.doubted_until = now + kDoubt;
    for (const Incarnation& other : Ids(known.paired)) {
      if (PairOf(member, other)->IsSettled()) Erase(member, other);
    }
  }
}

absl::Time Reachability::NextDeadline(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  if (IsCrowd()) return next;
  const auto at = [&](absl::Time when) {
    if (when > now) next = std::min(next, when);
  };
  for (const PairKey& key : unsettled_) {
    const Pair& pair = pairs_.at(key);
    if (pair.state == State::kReached) continue;
    at(pair.next_test);
    if (pair.state == State::kDoubted) at(pair.doubted_until);
  }
  for (const Incarnation& worker : paused_) at(Find(worker)->pause_until);
  return next;
}

}  // namespace lockstep::chief
