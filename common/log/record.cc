#include "common/log/record.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log/escape.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kNames[] = {"debug", "info", "warn", "error"};
constexpr absl::string_view kColours[] = {"\x1b[2m", "", "\x1b[33m", "\x1b[1;31m"};
constexpr absl::string_view kColourEnd = "\x1b[0m";

// Removes and returns a member; "" where it is missing or no string.
std::string TakeString(Json& json, const char* name) {
  const auto member = json.find(name);
  if (member == json.end()) return "";
  std::string text = member->is_string() ? member->get<std::string>() : "";
  json.erase(member);
  return text;
}

// Who says it, for people: a worker by its name, everything else by its part.
const std::string& Speaker(const LogRecord& record) {
  return record.part == "worker" && !record.worker.empty() ? record.worker : record.part;
}

}  // namespace

absl::string_view LogLevelName(LogLevel level) { return kNames[static_cast<int>(level)]; }

std::optional<LogLevel> ParseLogLevel(absl::string_view name) {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error}) {
    if (LogLevelName(level) == name) return level;
  }
  return std::nullopt;
}

std::string LogTimeText(int64_t at_ms) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::FromUnixMillis(at_ms), absl::UTCTimeZone());
}

std::string LogRecordJson(const LogRecord& record) {
  Json json = {{"time", LogTimeText(record.at_ms)}, {"level", LogLevelName(record.level)}, {"part", record.part}};
  if (!record.worker.empty()) json["worker"] = record.worker;
  if (!record.generation.empty()) json["generation"] = record.generation;
  if (record.step >= 0) json["step"] = record.step;
  if (!record.event.empty()) json["event"] = record.event;
  for (const auto& [name, value] : record.fields) {
    std::visit([&json, &name = name](const auto& alternative) { json[name] = alternative; }, value);
  }
  json["message"] = record.message;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<LogRecord> ParseLogRecord(absl::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  absl::Time at;
  const std::string time = TakeString(json, "time");
  const std::optional<LogLevel> level = ParseLogLevel(TakeString(json, "level"));
  if (!absl::ParseTime(absl::RFC3339_full, time, &at, nullptr) || !level.has_value()) return std::nullopt;
  LogRecord record;
  record.at_ms = absl::ToUnixMillis(at);
  record.level = *level;
  record.part = TakeString(json, "part");
  record.worker = TakeString(json, "worker");
  record.generation = TakeString(json, "generation");
  record.event = TakeString(json, "event");
  record.message = TakeString(json, "message");
  if (const auto step = json.find("step"); step != json.end()) {
    if (step->is_number_integer()) record.step = step->get<int64_t>();
    json.erase(step);
  }
  for (const auto& [name, value] : json.items()) {
    if (value.is_number_integer()) {
      record.fields.emplace_back(name, value.get<int64_t>());
    } else if (value.is_number()) {
      record.fields.emplace_back(name, value.get<double>());
    } else if (value.is_string()) {
      record.fields.emplace_back(name, value.get<std::string>());
    }
  }
  return record;
}

std::string LogRecordText(const LogRecord& record, bool colour) {
  std::string text = EscapeControls(Speaker(record));
  if (!record.generation.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", record.generation);
    if (record.step >= 0) absl::StrAppend(&text, "@", record.step);
  }
  if (!text.empty()) text += ": ";
  if (record.level != LogLevel::info) {
    const int index = static_cast<int>(record.level);
    const std::string level = absl::StrCat(kNames[index], ":");
    absl::StrAppend(&text, colour ? absl::StrCat(kColours[index], level, kColourEnd) : level, " ");
  }
  return absl::StrCat(text, EscapeControls(record.message));
}

}  // namespace lockstep
