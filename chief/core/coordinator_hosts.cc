// Members that hold the others up, hosts that make the job fail, and workers that come and go without being of use.
#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/core/coordinator.h"

namespace lockstep::chief {

// ---- stragglers
// ------------------------------------------------------------------------------------------------------

void Coordinator::NoteSpeed(const Worker& worker, const Report& message) {
  Stragglers::Counters counters;
  for (const NamedValue& value : message.stats) {
    if (value.name == "steps") counters.steps = value.value;
    if (value.name == "samples") counters.samples = value.value;
    if (value.name == "compute_seconds") counters.compute_seconds = value.value;
  }
  if (counters.steps == 0) return;
  for (const Stragglers::Change& change :
       stragglers_.Told(now_, life_.current().id, life_.current().members.size(), worker.id(), counters)) {
    const Worker* other = roster_.Find(change.worker);
    if (other == nullptr) continue;
    const std::string who = absl::StrCat(other->name(), " on ", other->host);
    const std::string much = absl::StrFormat("%.2f times the median of the members", change.slowdown);
    if (!change.straggles) {
      out_.Say(Level::kInfo, absl::StrCat(who, " is no straggler any more: it computes for ", much));
      continue;
    }
    const char* const alone =
        policy_.replace_stragglers && SpareFor(*other) == nullptr ? ", and no spare worker can take its place" : "";
    out_.Say(Level::kWarning,
             absl::StrCat(who, " is a straggler: in a step it computes for ", much, ", which all wait for", alone));
  }
}

const Worker* Coordinator::SpareFor(const Worker& straggler) {
  // With room for one more a newcomer joins in any case.
  if (life_.current().members.size() < Capacity(policy_) || !life_.current().Has(straggler.id())) return nullptr;
  for (Worker* spare : roster_.InOrder()) {
    if (!spare->IsReady() || !spare->AtRest() || spare->leaving || stragglers_.Straggles(spare->id())) continue;
    if (!pairs_.MayForm(spare->id(), now_) || !joins_.MayAsk({spare->host, spare->name()}, now_)) continue;
    // All of them: then the next team is the members and the spare, less the straggler.
    const bool reaches_all =
        std::all_of(life_.current().members.begin(), life_.current().members.end(),
                    [&](const Member& member) { return pairs_.Reached(spare->id(), member.incarnation); });
    if (reaches_all) return spare;
  }
  return nullptr;
}

std::string Coordinator::SwapText() {
  if (!policy_.replace_stragglers || life_.HasRequested(RequestKind::kForm)) return "";
  for (const Member& member : life_.current().members) {
    const Worker* straggler = roster_.Find(member.incarnation);
    if (straggler == nullptr || !stragglers_.Straggles(member.incarnation)) continue;
    const Worker* spare = SpareFor(*straggler);
    if (spare == nullptr || !stragglers_.Try(straggler->id(), spare->id())) continue;
    const std::string text = absl::StrCat(spare->name(), " takes the place of ", member.name, ", a straggler");
    out_.Say(Level::kInfo, text);
    return text;
  }
  return "";
}

// ---- hosts
// -----------------------------------------------------------------------------------------------------------

bool Coordinator::OthersSuffice(const std::string& host) {
  uint32_t others = 0;
  for (const Worker* worker : roster_.InOrder()) {
    const bool serves = worker->IsReady() && !worker->leaving && !worker->dismissed;
    others += serves && worker->host != host && !hosts_.IsExcluded(worker->host) ? 1 : 0;
  }
  return others >= std::max(policy_.min_workers, 1u);
}

void Coordinator::CountFailure(const std::string& host, const std::string& cause, bool broke_generation) {
  const bool enough = hosts_.Failed(host, cause);
  if (!enough || !OthersSuffice(host)) return SpendFailure(host, cause, broke_generation);
  if (!hosts_.IsExcluded(host)) Exclude(host);  // else its workers are on their way out
}

void Coordinator::CountMismatch(const Worker& worker, const std::string& where) {
  const std::string& host = worker.host;
  const bool enough = hosts_.Failed(host, absl::StrCat("the state of ", worker.name(), " differed at ", where));
  if (enough && OthersSuffice(host) && !hosts_.IsExcluded(host)) Exclude(host);
}

void Coordinator::Exclude(const std::string& host) {
  hosts_.Exclude(host);
  left_out_.push_back(host);
  budget_.GiveBack(host);
  out_.Say(Level::kWarning, hosts_.RefusalText(host));
  ServeExcluded();
}

// They go like leavers: at a boundary, and what they alone hold is handed over or saved first.
void Coordinator::ServeExcluded() {
  if (!hosts_.AnyExcluded()) return;
  for (Worker* worker : roster_.InOrder()) {
    if (worker->leaving || !hosts_.IsExcluded(worker->host) || !OthersSuffice(worker->host)) continue;
    worker->leaving = true;
  }
}

void Coordinator::ForgiveHosts(uint64_t published_step) {
  for (const std::string& host : hosts_.SavePublished(published_step, trained_for_)) {
    out_.Say(Level::kInfo, absl::StrCat("host ", host, " may take part again: the job has gone on for long enough"));
  }
}

// ---- joins
// -----------------------------------------------------------------------------------------------------------

void Coordinator::NoteLoss(const std::string& host, const std::string& name) {
  if (life_.Is(Phase::kDone)) return;
  const absl::Duration pause = joins_.Lost({host, name}, progress_.agreed(), now_);
  if (pause == absl::ZeroDuration()) return;
  out_.Say(Level::kWarning,
           absl::StrCat(name, " was lost ", joins_.Losses({host, name}), " times, each within ", JoinBackoff::kSteps,
                        " steps of its joining: for ", absl::FormatDuration(pause),
                        " no generation is ended for it; it may join one that is formed meanwhile"));
}

// ---- what people see
// -------------------------------------------------------------------------------------------------

void Coordinator::ViewHosts(CoordinatorView& view) {
  view.hosts = hosts_.Records();
  std::map<std::string, const Worker*> by_name;
  for (const Worker* worker : roster_.InOrder()) by_name[worker->name()] = worker;
  for (CoordinatorView::WorkerLine& line : view.workers) {
    const Incarnation& id = by_name.at(line.name)->id();
    line.slowdown = stragglers_.Slowdown(id);
    line.straggles = stragglers_.Straggles(id);
    if (line.straggles && line.state == "member") line.state = "straggler";
  }
}

}  // namespace lockstep::chief
