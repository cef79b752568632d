#include "chief/hooks/hook_message.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::string HookMessage(absl::string_view hook, absl::string_view event, int64_t step, const HookFacts& facts) {
  Json json;
  json["job"] = facts.job;
  json["hook"] = std::string(hook);
  json["event"] = std::string(event);
  json["step"] = step;
  json["time_ms"] = absl::ToUnixMillis(facts.now);
  json["directory"] = facts.directory;
  json["agreed_step"] = facts.agreed_step;
  if (facts.loss.has_value()) json["loss"] = Number(*facts.loss);
  if (facts.evaluation_step > 0) {
    Json values = Json::object();
    for (const auto& [name, value] : facts.evaluation) values[name] = Number(value);
    json["evaluation"] = {{"step", facts.evaluation_step}, {"values", values}};
  }
  json["checkpoint"] = {{"step", facts.checkpoint_step}, {"path", facts.checkpoint}};
  if (facts.exit_code.has_value()) {
    json["exit_code"] = *facts.exit_code;
    json["reason"] = facts.reason;
  }
  // Paths and names need not be UTF-8.
  return absl::StrCat(json.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace lockstep::chief
