#include "chief/core/host_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

bool HostPolicy::OthersSuffice(const CoreContext& context, const std::string& host) const {
  uint32_t others = 0;
  for (const Worker* worker : context.roster.InOrder()) {
    const bool serves = worker->IsReady() && !worker->leaving && !worker->dismissed;
    others += serves && worker->host != host && !IsExcluded(worker->host) ? 1 : 0;
  }
  return others >= std::max(context.policy.min_workers, 1u);
}

std::string HostPolicy::CountFailure(const CoreContext& context, const std::string& host, const std::string& cause,
                                     bool broke_generation) {
  const bool enough = scores_.Failed(host, cause);
  if (enough && OthersSuffice(context, host)) {
    if (!IsExcluded(host)) Exclude(context, host);  // else its workers are on their way out
    return "";
  }
  budget_.Spend(cause, host);
  if (broke_generation) budget_.GenerationBroken(host);
  return budget_.Verdict(MayExclude() && OthersSuffice(context, host) ? host : "");
}

void HostPolicy::CountMismatch(const CoreContext& context, const Worker& worker, const std::string& where) {
  const std::string& host = worker.host;
  const bool enough = scores_.Failed(host, absl::StrCat("the state of ", worker.name(), " differed at ", where));
  if (enough && OthersSuffice(context, host) && !IsExcluded(host)) Exclude(context, host);
}

void HostPolicy::Exclude(const CoreContext& context, const std::string& host) {
  scores_.Exclude(host);
  left_out_.push_back(host);
  budget_.GiveBack(host);
  context.out.Say(Level::kWarning, RefusalText(host));
  MarkExcluded(context);
}

void HostPolicy::MarkExcluded(const CoreContext& context) const {
  if (!AnyExcluded()) return;
  for (Worker* worker : context.roster.InOrder()) {
    if (worker->leaving || !IsExcluded(worker->host) || !OthersSuffice(context, worker->host)) continue;
    worker->leaving = true;
  }
}

void HostPolicy::SavePublished(const CoreContext& context, uint64_t step, absl::Duration trained_for) {
  budget_.SavePublished(step);
  for (const std::string& host : scores_.SavePublished(step, trained_for)) {
    context.out.Say(Level::kInfo,
                    absl::StrCat("host ", host, " may take part again: the job has gone on for long enough"));
  }
}

}  // namespace lockstep::chief
