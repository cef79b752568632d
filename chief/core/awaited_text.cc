#include "chief/core/awaited_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {
namespace {

// Why the workers that are here do not form a generation yet; empty when nothing but other workers is awaited.
std::string DelayText(const AwaitedFacts& facts) {
  if (!facts.life.Is(Phase::kWaiting)) return "";
  const absl::Time now = facts.context.now;
  const FormationBackoff& backoff = facts.life.backoff();
  if (backoff.Pauses(now)) {
    const absl::Duration left = absl::Ceil(backoff.until() - now, absl::Seconds(1));
    return absl::StrCat("the next generation, in ", absl::FormatDuration(left), ": ", backoff.fruitless(),
                        " generations in a row ended before a step, the last one because: ", backoff.cause());
  }
  std::set<Incarnation> earlier;
  for (const Worker* worker : facts.context.roster.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->leaving) continue;
    if (!facts.pairs.MayForm(worker->id(), now)) {
      return absl::StrCat(worker->name(), ", which pauses because it could not do its part: ", backoff.cause());
    }
    const Incarnation doubted = facts.pairs.DoubtedAmong(worker->id(), earlier, now);
    earlier.insert(worker->id());
    if (doubted.IsNone()) continue;
    const std::string whom = doubted == worker->id() ? "others" : facts.context.roster.Find(doubted)->name();
    return absl::StrCat("a test whether ", worker->name(), " reaches ", whom,
                        "; the last generation broke so: ", backoff.cause());
  }
  return "";
}

std::string ApartText(const AwaitedFacts& facts) {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> apart;
  for (const auto& [one, other] : facts.pairs.ApartPairs(kMostNamed)) {
    const Worker* earlier = facts.context.roster.Find(one);
    const Worker* later = facts.context.roster.Find(other);
    if (earlier == nullptr || later == nullptr) continue;
    if (earlier->order > later->order) std::swap(earlier, later);
    apart.push_back(absl::StrCat(later->name(), " and ", earlier->name()));
  }
  return apart.empty() ? "" : absl::StrCat("; cannot connect to each other: ", absl::StrJoin(apart, ", "));
}

}  // namespace

std::string AwaitedText(const AwaitedFacts& facts) {
  const JobPolicy& policy = facts.context.policy;
  uint32_t ready = 0;
  std::vector<std::string> missing;
  for (const Worker* worker : facts.context.roster.InOrder()) {
    if (worker->leaving) continue;
    if (worker->IsReady() && worker->AtRest()) {
      ++ready;
    } else {
      missing.push_back(absl::StrCat(worker->name(), worker->AtRest() ? " (preparing)" : " (stopping)"));
    }
  }
  const uint32_t wanted = std::max(policy.min_workers, policy.expected_workers);
  for (const auto& [name, why] : facts.gone.reasons()) {
    if (missing.size() + ready < wanted && facts.context.roster.ByName(name) == nullptr) {
      missing.push_back(absl::StrCat(name, " (", why, ")"));
    }
  }
  if (missing.size() + ready < wanted) {
    missing.push_back(absl::StrCat(wanted - ready - missing.size(), " that never connected"));
  }
  std::vector<std::string> parts;
  if (const std::string delay = DelayText(facts); !delay.empty()) parts.push_back(delay);
  if (ready < wanted || policy.expected_workers != 0) {
    parts.push_back(absl::StrCat(ready, "/", wanted, " joined"));
  } else if (parts.empty()) {
    parts.push_back(
        absl::StrCat(ready, " joined; others that are starting are waited for (--expected-workers says how many)"));
  }
  if (!missing.empty()) parts.push_back(absl::StrCat("missing ", absl::StrJoin(missing, ", ")));
  return absl::StrCat(absl::StrJoin(parts, "; "), ApartText(facts), facts.drained);
}

std::string WaitingText(const AwaitedFacts& facts) {
  const GenerationLife::Current& current = facts.life.current();
  switch (facts.life.phase()) {
    case Phase::kFinishing:
      return "the last save to be published";
    case Phase::kForming:
      return absl::StrCat("generation ", current.id.ToString(), ": ", current.formed.size(), "/",
                          current.members.size(), " members synchronised");
    default:
      return AwaitedText(facts);
  }
}

std::vector<CoordinatorView::WorkerLine> WorkerLines(const Roster& roster, const GenerationLife& life,
                                                     const Stragglers& stragglers) {
  std::map<Incarnation, int32_t> ranks;
  for (const Member& member : life.current().members) ranks.emplace(member.incarnation, ranks.size());
  std::vector<CoordinatorView::WorkerLine> lines;
  for (const Worker* worker : roster.InOrder()) {
    CoordinatorView::WorkerLine line;
    line.name = worker->name();
    line.host = worker->host;
    line.device = worker->device;
    line.step = worker->step;
    line.slowdown = stragglers.Slowdown(worker->id());
    line.straggles = stragglers.Straggles(worker->id());
    line.state = worker->IsReady() ? "spare" : "joining";
    if (const auto rank = ranks.find(worker->id()); rank != ranks.end() && !worker->AtRest()) {
      line.state = line.straggles ? "straggler" : "member";
      line.rank = rank->second;
    }
    if (line.rank < 0 && worker->IsReady() && life.Is(Phase::kWaiting)) line.state = "ready";
    if (worker->leaving) line.state = "leaving";
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace lockstep::chief
