#include "chief/core/invariants.h"

#include <algorithm>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

std::string BrokenByRoster(const InvariantView& view) {
  std::set<SessionId> sessions;
  std::set<std::string> names;
  for (const Worker* worker : view.roster.InOrder()) {
    if (!sessions.insert(worker->session).second) {
      return absl::StrCat("session ", worker->session, " belongs to two workers, one of them ", worker->name());
    }
    if (!names.insert(worker->name()).second) return absl::StrCat("two workers have the name ", worker->name());
  }
  return "";
}

std::string BrokenByGeneration(const InvariantView& view) {
  if (!view.runs) return "";
  std::set<Incarnation> members;
  for (const Member& member : view.members) {
    members.insert(member.incarnation);
    const Worker* worker = view.roster.Find(member.incarnation);
    if (worker == nullptr) {
      return absl::StrCat("generation ", view.current.ToString(), " steps without its member ", member.name);
    }
    if (worker->busy != view.current) {
      return absl::StrCat(member.name, " is a member of generation ", view.current.ToString(), " and runs ",
                          worker->busy.ToString());
    }
  }
  for (const Worker* worker : view.roster.InOrder()) {
    if (worker->AtRest() || members.count(worker->id()) != 0) continue;
    if (!worker->verdict_sent) {
      return absl::StrCat(worker->name(), " runs generation ", worker->busy.ToString(), " beside ",
                          view.current.ToString(), " and was not told that it is over");
    }
  }
  return "";
}

std::string BrokenByDrain(const InvariantView& view) {
  if (view.drains.empty()) return "";
  for (const Worker* worker : view.roster.InOrder()) {
    const auto drain = view.drains.Of(worker->name(), worker->host);
    if (drain.has_value() && !worker->leaving) {
      return absl::StrCat(worker->name(), " on ", worker->host, " does not leave although ", *drain, " is drained");
    }
  }
  return "";
}

std::string BrokenByPublication(const InvariantView& view) {
  if (view.same_job_lineage && view.published.step < view.published_before.step) {
    return absl::StrCat(view.published.ToString(), " is the newest checkpoint after ",
                        view.published_before.ToString());
  }
  for (const Action& action : view.actions) {
    const auto* commit = std::get_if<PublishCommit>(&action);
    if (commit == nullptr) continue;
    const SnapshotId& snapshot = commit->snapshot;
    const bool again = snapshot.step == view.published.step && snapshot.digest == view.published.digest;
    if (snapshot.step <= view.published.step && !again) {
      return absl::StrCat(snapshot.ToString(), " is to be published after ", view.published.ToString());
    }
    if (!view.history.Includes(snapshot.lineage, snapshot.step)) {
      return absl::StrCat(snapshot.ToString(), " of lineage ", snapshot.lineage,
                          " is to be published, which the job does not contain");
    }
  }
  return "";
}

std::string BrokenByHosts(const InvariantView& view) {
  if (view.left_out.empty()) return "";
  for (const Worker* worker : view.roster.InOrder()) {
    if (std::find(view.left_out.begin(), view.left_out.end(), worker->host) == view.left_out.end()) return "";
  }
  return absl::StrCat("host ", view.left_out.front(), " is left out, and no other one takes part");
}

}  // namespace

std::string BrokenInvariant(const InvariantView& view) {
  if (std::string broken = BrokenByPublication(view); !broken.empty()) return broken;
  if (!view.in_full) return view.roster.IsDistinct() ? "" : "two workers share a session or a name";
  for (const auto& broken :
       {BrokenByRoster(view), BrokenByGeneration(view), BrokenByDrain(view), BrokenByHosts(view)}) {
    if (!broken.empty()) return broken;
  }
  return "";
}

}  // namespace lockstep::chief
