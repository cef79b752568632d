#include "tests/simulation/oracle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::simulation {

void Oracle::Violation(std::string what) { violations_.push_back(std::move(what)); }

void Oracle::CheckState(const std::string& who, const ReplicaState& state) {
  if (state.step < 0 || state.step > reference_.end_step()) {
    return Violation(absl::StrCat(who, ": a state at step ", state.step, " of ", reference_.end_step()));
  }
  if (!(reference_.at(state.step) == state)) {
    Violation(absl::StrCat(who, ": the state at step ", state.step, " differs from the undisturbed run's"));
  }
}

void Oracle::CheckLedger(const std::string& who, const EvaluationLedger& ledger) {
  if (!(ledger == reference_.ledger())) {
    Violation(absl::StrCat(who, ": its evaluations are not those of an undisturbed run: the best was step ",
                           ledger.best_step, " instead of ", reference_.ledger().best_step));
  }
}

void Oracle::Applied(const std::string& who, const ReplicaState& state, std::vector<uint64_t> shards) {
  ++applied_;
  CheckState(who, state);
  std::sort(shards.begin(), shards.end());
  std::vector<int64_t> samples;
  for (uint64_t shard : shards) {
    for (int64_t position : ShardPositions(job_, state.step - 1, static_cast<int>(shard))) samples.push_back(position);
  }
  bool once = static_cast<int64_t>(samples.size()) == job_.global_batch;
  for (size_t i = 0; once && i < samples.size(); ++i) {
    once = samples[i] == (state.step - 1) * job_.global_batch + static_cast<int64_t>(i);
  }
  if (!once) Violation(absl::StrCat(who, ": step ", state.step, " did not use each of its samples once"));
  const auto [it, first] = samples_of_step_.emplace(state.step, samples);
  if (!first && it->second != samples) {
    Violation(absl::StrCat(who, ": step ", state.step, " used other samples than before"));
  }
  highest_applied_ = std::max(highest_applied_, state.step);
}

void Oracle::Replaced(const std::string& who, bool had, const ReplicaState& before, const ReplicaState& after) {
  CheckState(who, after);
  if (had && before.step > after.step) {
    Violation(absl::StrCat(who, ": a live replica went back from step ", before.step, " to ", after.step));
  }
}

void Oracle::Started(const std::string& who, const Generation& generation, const Position& position) {
  const auto [it, first] = started_.emplace(generation, position);
  if (!first && !(it->second == position)) {
    Violation(absl::StrCat(who, ": starts generation ", generation.ToString(), " at ", position.ToString(),
                           ", another member at ", it->second.ToString()));
  }
}

void Oracle::Published(Term term, uint64_t step, const Digest& digest, bool accepted) {
  if (!accepted) return;
  if (term < newest_scan_) {
    Violation(absl::StrCat("term ", term, " publishes step ", step, " after term ", newest_scan_, " took over"));
  }
  if (static_cast<int64_t>(step) > reference_.end_step() ||
      digest != DigestText(reference_.at(static_cast<int64_t>(step)))) {
    Violation(absl::StrCat("term ", term, " publishes another state as step ", step));
  }
}

void Oracle::Scanned(Term term, int64_t newest) {
  newest_scan_ = std::max(newest_scan_, term);
  if (newest < highest_committed_) {
    Violation(absl::StrCat("term ", term, " finds step ", newest, " as the newest checkpoint, but step ",
                           highest_committed_, " was committed"));
  }
}

}  // namespace lockstep::simulation
