// `lockstep status` and `lockstep stop`: asks the chief of a running job.
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/net/token.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/commands.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(5);

struct ChiefPlace {
  std::string directory;
  std::string address;
  std::string token_file;
  bool json = false;
};

absl::StatusOr<std::unique_ptr<AdminClient>> Connect(const ChiefPlace& place) {
  if (!place.directory.empty()) return AdminClient::ForDirectory(place.directory);
  absl::StatusOr<std::string> found = ReadCallerToken(place.token_file);
  if (!found.ok()) return absl::UnauthenticatedError(found.status().message());
  std::string token = *std::move(found);
  return std::make_unique<AdminClient>(place.address, std::move(token));
}

double ProgressPercentage(const proto::StatusReply& status) {
  return status.end_step() == 0 ? 0.0
                                : 100.0 * static_cast<double>(status.step()) / static_cast<double>(status.end_step());
}

// The chief's answer, with the fields that other tools read by name.
std::string AsJson(const proto::StatusReply& status) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const auto converted = google::protobuf::util::MessageToJsonString(status, &text, options);
  nlohmann::json json = converted.ok() ? nlohmann::json::parse(text) : nlohmann::json::object();
  // JSON has no 64-bit integers of its own and protobuf writes them as strings; steps are small enough for numbers.
  json["step"] = status.step();
  json["end_step"] = status.end_step();
  json["published_step"] = status.published_step();
  json["evaluation_step"] = status.evaluation_step();
  json["best_step"] = status.best_step();
  for (int i = 0; i < status.workers_size(); ++i) json["workers"][i]["step"] = status.workers(i).step();
  json["progressPercentage"] = static_cast<int>(ProgressPercentage(status));
  json["estimatedRemainingSeconds"] =
      std::isfinite(status.eta_seconds()) ? static_cast<int64_t>(status.eta_seconds()) : 0;
  json["lastUpdatedTime"] = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  json["metrics"] = nlohmann::json::array({{{"name", "loss"}, {"value", status.loss()}}});
  for (const auto& metric : status.evaluation()) {
    json["metrics"].push_back({{"name", absl::StrCat("eval_", metric.name())}, {"value", metric.value()}});
  }
  return json.dump(2);
}

void PrintText(const proto::StatusReply& status) {
  const std::string eta = std::isfinite(status.eta_seconds())
                              ? absl::FormatDuration(absl::Seconds(static_cast<int64_t>(status.eta_seconds())))
                              : "-";
  std::cout << absl::StreamFormat("%s  step %d/%d  %d%%  loss %.4g  %.0f samples/s  ETA %s\n", status.phase(),
                                  status.step(), status.end_step(), static_cast<int>(ProgressPercentage(status)),
                                  status.loss(), status.samples_per_second(), eta);
  std::cout << absl::StreamFormat("saved step %d  failures %d/%d  preemptions %d  losses %d  refused callers %d\n",
                                  status.published_step(), status.failures(), status.failures_allowed(),
                                  status.preemptions(), status.losses(), status.refused_callers());
  for (const auto& metric : status.evaluation()) {
    std::cout << absl::StreamFormat("evaluated at step %d: %s %.4f\n", status.evaluation_step(), metric.name(),
                                    metric.value());
  }
  if (status.best_step() > 0) {
    std::cout << absl::StreamFormat("best at step %d: %s %.4f\n", status.best_step(), status.metric(),
                                    status.best_value());
  }
  for (const auto& worker : status.workers()) {
    std::cout << absl::StreamFormat("  %-12s %-8s rank %d  step %d  %s  %s\n", worker.name(), worker.state(),
                                    worker.rank(), worker.step(), worker.host(), worker.device());
  }
  if (!status.waiting_for().empty()) std::cout << "waiting for " << status.waiting_for() << "\n";
}

int Failed(const absl::Status& status) {
  if (absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status)) return Fail(status, kExitBadToken);
  return Fail(status, kExitChiefUnreachable);
}

int Status(const ChiefPlace& place) {
  auto client = Connect(place);
  if (!client.ok()) return Failed(client.status());
  auto status = (*client)->Status(kDeadline);
  if (!status.ok()) return Failed(status.status());
  if (place.json) {
    std::cout << AsJson(*status) << "\n";
  } else {
    PrintText(*status);
  }
  return kExitDone;
}

int Stop(const ChiefPlace& place) {
  auto client = Connect(place);
  if (!client.ok()) return Failed(client.status());
  const absl::Status stopped = (*client)->Stop("lockstep stop", kDeadline);
  if (!stopped.ok()) return Failed(stopped);
  std::cout << "asked the job to save and stop\n";
  return kExitDone;
}

std::shared_ptr<ChiefPlace> AddPlace(CLI::App& command) {
  auto place = std::make_shared<ChiefPlace>();
  CLI::Option_group* group = command.add_option_group("place", "Which job");
  group->add_option("--dir", place->directory, "The job's directory on this machine");
  group->add_option("--chief", place->address, "The chief's address, HOST:PORT");
  group->require_option(1);
  command.add_option("--token-file", place->token_file,
                     "The job's token (default: LOCKSTEP_TOKEN); not needed with --dir");
  return place;
}

}  // namespace

void AddStatus(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("status", "How a running job is");
  auto place = AddPlace(*command);
  command->add_flag("--json", place->json, "For other programs");
  command->callback([place, &exit_code] { exit_code = Status(*place); });
}

void AddStop(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("stop", "Save and end a running job");
  auto place = AddPlace(*command);
  command->callback([place, &exit_code] { exit_code = Stop(*place); });
}

}  // namespace lockstep::cli
