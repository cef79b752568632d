#include "chief/server/job_page.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chief/metrics/job_metrics.h"
#include "common/checkpoint_format/naming.h"
#include "common/log/log.h"
#include "common/net/chief_key.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
// Of a bucket: a page that waits longer says that what it shows is old.
constexpr absl::Duration kPatience = absl::Seconds(10);

// Over HTTP a credential can be read on its way: what can do more than read must not be shown.
absl::Status CheckReader(const std::string& token, const std::string& credential) {
  if (!absl::StartsWith(credential, absl::StrCat("lockstep-", NameOf(Role::kRead), "-"))) {
    return absl::PermissionDeniedError(
        "this is no read credential, and HTTP is not encrypted: nothing that can do more is taken here. "
        "`lockstep token --dir DIR --role read` makes one");
  }
  const absl::StatusOr<CallerKey> key = CallerKeyOf(credential, Role::kRead);
  if (!key.ok()) return key.status();
  if (!RoleOfSecret(token, key->secret).has_value()) {
    return absl::PermissionDeniedError("this credential is not of this job, or of a token that it had before");
  }
  return absl::OkStatus();
}

// Where to try to listen, in this order: people have the page of the chief before open in their browsers.
std::vector<std::string> PagePlaces(const JobPage::Options& options) {
  if (options.http != "auto") return {options.http};
  const std::string earlier = options.store->ReadPage();
  std::vector<std::string> places;
  absl::string_view place = earlier;
  if (absl::ConsumePrefix(&place, "http://") && absl::ConsumeSuffix(&place, "/") &&
      absl::StartsWith(place, absl::StrCat(kLoopback, ":"))) {
    places.emplace_back(place);
  }
  places.push_back(absl::StrCat(kLoopback, ":0"));
  return places;
}

}  // namespace

std::unique_ptr<JobPage> JobPage::Start(const Options& options) {
  if (options.http == "off") return nullptr;
  std::unique_ptr<JobPage> page(new JobPage);
  const absl::Status served = page->Serve(options);
  if (!served.ok()) {
    LS_LOG(warn, "no page and no metrics are served: observe.http: ", served.message());
    return nullptr;
  }
  const absl::Status written = options.store->WritePage(page->server_->url());
  if (!written.ok()) LS_LOG(warn, layout::kPage, ": ", written.message());
  LS_LOG(info, "page: ", page->server_->url(), page->server_->on_loopback() ? "" : "?token=READ-CREDENTIAL");
  return page;
}

absl::Status JobPage::Serve(const Options& options) {
  LS_ASSIGN_OR_RETURN(place_, JobPlace::Open(options.directory, kPatience));
  ChiefLoop* const loop = options.loop;
  api_ = std::make_unique<PageApi>(PageApi::Options{
      .directory = options.directory, .place = place_.get(), .present = [loop] { return loop->AskPresent(); }});
  PageServer::Options server;
  server.check_credential = [token = options.store->token()](const std::string& credential) {
    return CheckReader(token, credential);
  };
  server.health.healthy = [loop] {
    const absl::Duration stands = loop->SinceTurn();
    if (stands < kHealthy) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the chief's loop has stood for ", absl::FormatDuration(stands)));
  };
  server.health.ready = server.health.healthy;
  server.metrics = [api = api_.get()]() -> absl::StatusOr<std::string> {
    LS_ASSIGN_OR_RETURN(const PresentJob present, api->Present());
    return JobMetricsText(present);
  };
  absl::Status first = absl::OkStatus();
  for (const std::string& place : PagePlaces(options)) {
    server.listen = place;
    absl::StatusOr<std::unique_ptr<PageServer>> started = PageServer::Start(server, api_.get());
    if (started.ok()) {
      server_ = *std::move(started);
      return absl::OkStatus();
    }
    first.Update(started.status());
  }
  return first;
}

}  // namespace lockstep::chief
