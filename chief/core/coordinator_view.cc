// What people see of the core: what it waits for and why, and who is there. Nothing is decided by it.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/coordinator.h"

namespace lockstep::chief {

CoordinatorView Coordinator::View() {
  CoordinatorView view;
  view.phase = phase_;
  view.generation = current_.id;
  view.lineage = history_.lineage();
  view.agreed_step = progress_.agreed();
  view.published_step = saves_.published().step;
  view.failures = budget_.spent();
  view.preemptions = gone_.preemptions();
  view.losses = gone_.losses();
  view.drained = drains_.Targets();
  if (phase_ != Phase::kRunning && phase_ != Phase::kDone) view.waiting_for = WaitingText();
  if (saves_.Insists() && !saves_.TroubleText(now_).empty()) view.waiting_for = saves_.TroubleText(now_);
  if (const std::string trouble = plan_.TroubleText(now_); !trouble.empty()) view.waiting_for = trouble;
  if (const std::string way_back = repair_.Text(now_); !way_back.empty()) view.waiting_for = way_back;
  std::map<Incarnation, int32_t> ranks;
  for (const Member& member : current_.members) ranks.emplace(member.incarnation, ranks.size());
  for (const Worker* worker : roster_.InOrder()) {
    CoordinatorView::WorkerLine line;
    line.name = worker->name();
    line.host = worker->host;
    line.device = worker->device;
    line.state = worker->IsReady() ? "spare" : "joining";
    line.step = worker->step;
    if (const auto rank = ranks.find(worker->id()); rank != ranks.end() && !worker->AtRest()) {
      line.state = "member";
      line.rank = rank->second;
    }
    if (line.rank < 0 && worker->IsReady() && phase_ == Phase::kWaiting) line.state = "ready";
    if (worker->leaving) line.state = "leaving";
    view.workers.push_back(std::move(line));
  }
  ViewHosts(view);
  return view;
}

std::string Coordinator::AwaitedText() {
  uint32_t ready = 0;
  std::vector<std::string> missing;
  for (Worker* worker : roster_.InOrder()) {
    if (worker->leaving) continue;
    if (worker->IsReady() && worker->AtRest()) {
      ++ready;
    } else {
      missing.push_back(absl::StrCat(worker->name(), worker->AtRest() ? " (preparing)" : " (stopping)"));
    }
  }
  const uint32_t wanted = std::max(policy_.min_workers, policy_.expected_workers);
  for (const auto& [name, why] : gone_.reasons()) {
    if (missing.size() + ready < wanted && roster_.ByName(name) == nullptr) {
      missing.push_back(absl::StrCat(name, " (", why, ")"));
    }
  }
  if (missing.size() + ready < wanted) {
    missing.push_back(absl::StrCat(wanted - ready - missing.size(), " that never connected"));
  }
  std::vector<std::string> parts;
  if (const std::string delay = DelayText(); !delay.empty()) parts.push_back(delay);
  if (ready < wanted || policy_.expected_workers != 0) {
    parts.push_back(absl::StrCat(ready, "/", wanted, " joined"));
  } else if (parts.empty()) {
    parts.push_back(
        absl::StrCat(ready, " joined; others that are starting are waited for (--expected-workers says how many)"));
  }
  if (!missing.empty()) parts.push_back(absl::StrCat("missing ", absl::StrJoin(missing, ", ")));
  return absl::StrCat(absl::StrJoin(parts, "; "), ApartText(), DrainText());
}

std::string Coordinator::DelayText() {
  if (phase_ != Phase::kWaiting) return "";
  const auto in_seconds = [](absl::Duration left) { return absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))); };
  if (backoff_.Pauses(now_)) {
    return absl::StrCat("the next generation, in ", in_seconds(backoff_.until() - now_), ": ", backoff_.fruitless(),
                        " in a row broke without a step, the last one so: ", backoff_.cause());
  }
  std::set<Incarnation> earlier;
  for (const Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->leaving) continue;
    if (!pairs_.MayForm(worker->id(), now_)) {
      return absl::StrCat(worker->name(), ", which pauses because it could not do its part: ", backoff_.cause());
    }
    const Incarnation doubted = pairs_.DoubtedAmong(worker->id(), earlier, now_);
    earlier.insert(worker->id());
    if (doubted.IsNone()) continue;
    const std::string whom = doubted == worker->id() ? "others" : roster_.Find(doubted)->name();
    return absl::StrCat("a test whether ", worker->name(), " reaches ", whom,
                        "; the last generation broke so: ", backoff_.cause());
  }
  return "";
}

std::string Coordinator::ApartText() {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> apart;
  for (const auto& [one, other] : pairs_.ApartPairs(kMostNamed)) {
    const Worker* earlier = roster_.Find(one);
    const Worker* later = roster_.Find(other);
    if (earlier == nullptr || later == nullptr) continue;
    if (earlier->order > later->order) std::swap(earlier, later);
    apart.push_back(absl::StrCat(later->name(), " and ", earlier->name()));
  }
  return apart.empty() ? "" : absl::StrCat("; cannot connect to each other: ", absl::StrJoin(apart, ", "));
}

void Coordinator::SayWhatIsAwaited() {
  if (phase_ == Phase::kRunning || phase_ == Phase::kDone || phase_ == Phase::kEnded) return;
  if (now_ - std::max(said_, phase_since_) < kSayEvery) return;
  said_ = now_;
  if (phase_ == Phase::kFinishing && !saves_.TroubleText(now_).empty()) return;  // the storage's trouble is said
  out_.Say(Level::kInfo, absl::StrCat("waiting for ", WaitingText()));
}

std::string Coordinator::WaitingText() {
  switch (phase_) {
    case Phase::kFinishing:
      return "the last save to be published";
    case Phase::kForming:
      return absl::StrCat("generation ", current_.id.ToString(), ": ", current_.formed.size(), "/",
                          current_.members.size(), " members synchronised");
    default:
      return AwaitedText();
  }
}

}  // namespace lockstep::chief
