// `lockstep view`: the page of a job from its directory or bucket, whether its chief runs or not.
#include <signal.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/metrics/job_metrics.h"
#include "chief/stats/live_stats.h"
#include "chief/watch/page_api.h"
#include "chief/watch/page_server.h"
#include "common/job_place/job_place.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/sync/stop_signals.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_state.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kReadDeadline = absl::Seconds(2);

struct ViewQuestion {
  std::string directory;
  int port = 0;
};

// What the chief says, or what its directory tells of it.
absl::StatusOr<chief::PresentJob> Look(const std::string& directory, const JobPlace& place) {
  LS_ASSIGN_OR_RETURN(const JobState state, ReadJobState(directory, kReadDeadline));
  chief::PresentJob present;
  present.status = state.status;
  present.live = !HasEnded(state);
  present.exit_code = state.exit_code;
  if (!state.answered) present.cause = state.reason;
  absl::StatusOr<WorkerStatsFile> stats = chief::ReadLiveStats(place.storage());
  if (absl::IsNotFound(stats.status())) return present;  // nothing was trained yet
  LS_RETURN_IF_ERROR(stats.status());
  present.stats = *std::move(stats);
  if (!state.answered) {
    present.status.set_step(std::max(present.status.step(), static_cast<uint64_t>(present.stats.job().step())));
  }
  return present;
}

absl::Status ServeView(const ViewQuestion& question) {
  LS_RETURN_IF_ERROR(ReadJobState(question.directory, kReadDeadline).status());
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(question.directory));
  const auto present = [&] { return Look(question.directory, *place); };
  chief::PageApi api({.directory = question.directory, .place = place.get(), .present = present});
  chief::PageServer::Options options;
  options.listen = absl::StrCat("127.0.0.1:", question.port);
  options.check_credential = [](const std::string&) { return absl::OkStatus(); };  // only this machine reaches it
  options.health.healthy = [] { return absl::OkStatus(); };
  options.health.ready = options.health.healthy;
  options.metrics = [&]() -> absl::StatusOr<std::string> {
    LS_ASSIGN_OR_RETURN(const chief::PresentJob job, api.Present());
    return chief::JobMetricsText(job);
  };
  const sigset_t signals = BlockStopSignals();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<chief::PageServer> server, chief::PageServer::Start(options, &api));
  std::cout << "page: " << server->url() << "\nCtrl-C ends it\n" << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  return absl::OkStatus();
}

int ViewExitCode(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  const bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return Fail(status, usage ? kExitUsage : absl::IsFailedPrecondition(status) ? kExitBadJob : kExitStorage);
}

}  // namespace

void AddView(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("view", "The page of a job, running or not, from its directory or bucket");
  auto question = std::make_shared<ViewQuestion>();
  AddPlace(*command, "directory", question->directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  command->add_option("--port", question->port, "Where this machine's browser finds it; without it: any free port")
      ->check(CLI::Range(0, 65535));
  command->callback([question, &exit_code] { exit_code = ViewExitCode(ServeView(*question)); });
}

}  // namespace lockstep::cli
