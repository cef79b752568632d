// `lockstep drain`: lets workers or hosts leave a job and keeps them away, or lets them come back.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/chief_place.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/time_limit.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kDrainDeadline = absl::Seconds(5);
constexpr absl::Duration kLookEvery = absl::Milliseconds(500);

struct DrainOptions {
  std::shared_ptr<ChiefPlace> place;
  std::vector<std::string> targets;
  std::string by;
  bool undo = false;
  bool wait = false;
};

bool IsHere(const proto::StatusReply& status, const std::vector<std::string>& targets) {
  return std::any_of(status.workers().begin(), status.workers().end(), [&](const proto::WorkerStatus& worker) {
    return std::any_of(targets.begin(), targets.end(),
                       [&](const std::string& target) { return worker.name() == target || worker.host() == target; });
  });
}

// Until none of them is here any more. A chief that is only slow is waited for.
int WaitUntilGone(const AdminClient& client, const DrainOptions& options) {
  for (;;) {
    const absl::StatusOr<proto::StatusReply> status = client.Status(kDrainDeadline);
    if (status.ok() && !IsHere(*status, options.targets)) break;
    const bool passes = status.ok() || absl::IsDeadlineExceeded(status.status());
    if (!passes) return ChiefFailure(status.status());
    absl::SleepFor(kLookEvery);
  }
  std::cout << "they are gone\n";
  return kExitDone;
}

int Drain(const DrainOptions& options) {
  if (options.undo && (options.wait || !options.by.empty())) {
    return Fail(absl::InvalidArgumentError("drain: --undo takes neither --by nor --wait"), kExitUsage);
  }
  proto::DrainRequest request;
  for (const std::string& target : options.targets) request.add_targets(target);
  request.set_undo(options.undo);
  request.set_by("lockstep drain");
  if (!options.by.empty()) {
    const absl::StatusOr<absl::Duration> within = ParseTimeLimit(options.by, absl::Now(), absl::LocalTimeZone());
    if (!within.ok()) {
      return Fail(absl::InvalidArgumentError(absl::StrCat("drain: --by ", within.status().message())), kExitUsage);
    }
    absl::Duration rest;
    request.mutable_within()->set_seconds(absl::IDivDuration(*within, absl::Seconds(1), &rest));
    request.mutable_within()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
  const auto client = ConnectTo(*options.place);
  if (!client.ok()) return ChiefFailure(client.status());
  const absl::StatusOr<proto::DrainReply> reply = (*client)->Drain(request, kDrainDeadline);
  if (!reply.ok()) return ChiefFailure(reply.status());
  for (const std::string& line : reply->lines()) std::cout << EscapeControls(line) << "\n";
  std::cout << std::flush;
  return options.wait ? WaitUntilGone(**client, options) : int{kExitDone};
}

}  // namespace

void AddDrain(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "drain", "Let workers or hosts leave a running job at a step boundary, and keep them away until --undo");
  auto options = std::make_shared<DrainOptions>();
  command->add_option("name", options->targets, "Names of workers or hosts, as `lockstep status` shows them")
      ->required();
  options->place = AddChiefPlace(*command);
  command->add_option("--by", options->by,
                      "When they are to be gone: 90s, 10m, 18:30, 2026-11-23T18:30:00Z. A worker whose state others "
                      "hold goes then in any case; one that alone holds it stays until that is saved");
  command->add_flag("--undo", options->undo, "Let them come back");
  command->add_flag("--wait", options->wait, "End only when they are gone");
  command->callback([options, &exit_code] { exit_code = Drain(*options); });
}

}  // namespace lockstep::cli
