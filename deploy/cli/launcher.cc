#include "deploy/cli/launcher.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::cli {
namespace {

using EnvironmentLookup = std::function<const char*(const char*)>;

constexpr char kTfConfig[] = "TF_CONFIG";
// Says that torchrun's own process listens at MASTER_ADDR:MASTER_PORT.
constexpr char kAgentStore[] = "TORCHELASTIC_USE_AGENT_STORE";

std::string Text(const EnvironmentLookup& variable, const char* name) {
  const char* const text = variable(name);
  return text == nullptr ? "" : text;
}

absl::StatusOr<std::optional<int>> ProcessNumber(const EnvironmentLookup& variable, const char* name) {
  const std::string text = Text(variable, name);
  if (text.empty()) return std::nullopt;
  int value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= 0) return value;
  return absl::InvalidArgumentError(absl::StrCat(name, "='", text, "' is no number of a process"));
}

absl::StatusOr<LaunchedTask> ReadTfConfig(const std::string& text) {
  const nlohmann::json config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto task = config.is_object() && config.contains("task") ? config["task"] : nlohmann::json();
  if (!task.is_object() || !task.value("type", nlohmann::json()).is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(kTfConfig, " is no JSON with the \"type\" of a \"task\""));
  }
  LaunchedTask found{.by = kTfConfig};
  const nlohmann::json index = task.value("index", nlohmann::json(0));
  if (!index.is_number_unsigned())
    return absl::InvalidArgumentError(absl::StrCat(kTfConfig, ": \"index\" is no number"));
  found.name = absl::StrCat(task["type"].get<std::string>(), "-", index.get<uint64_t>());
  const auto cluster = config.value("cluster", nlohmann::json::object());
  for (const char* const type : {"chief", "master"}) {
    if (!cluster.is_object() || !cluster.contains(type) || !cluster[type].is_array() || cluster[type].empty()) continue;
    if (cluster[type][0].is_string()) found.chief = cluster[type][0].get<std::string>();
  }
  return found;
}

absl::StatusOr<LaunchedTask> ReadMaster(const EnvironmentLookup& variable) {
  LaunchedTask found{.by = "RANK"};
  LS_ASSIGN_OR_RETURN(const std::optional<int> rank, ProcessNumber(variable, "RANK"));
  found.name = absl::StrCat("worker-", *rank);
  LS_ASSIGN_OR_RETURN(found.local_rank, ProcessNumber(variable, "LOCAL_RANK"));
  const std::string host = Text(variable, "MASTER_ADDR"), port = Text(variable, "MASTER_PORT");
  if (!host.empty() && !port.empty() && Text(variable, kAgentStore) != "True")
    found.chief = absl::StrCat(host, ":", port);
  return found;
}

}  // namespace

absl::StatusOr<std::optional<LaunchedTask>> ThisLaunchedTask(const EnvironmentLookup& variable) {
  if (const std::string config = Text(variable, kTfConfig); !config.empty()) return ReadTfConfig(config);
  if (Text(variable, "RANK").empty() || Text(variable, "MASTER_ADDR").empty()) return std::nullopt;
  return ReadMaster(variable);
}

}  // namespace lockstep::cli
