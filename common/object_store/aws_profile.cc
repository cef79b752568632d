#include "common/object_store/aws_profile.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "common/storage/host_file.h"

namespace lockstep {
namespace {

using Settings = std::map<std::string, std::string>;

// The text of the file that `variable` names, or of ~/.aws/`name`; "" when that one is missing.
absl::StatusOr<std::pair<std::string, std::string>> ReadShared(const Environment& environment, const char* variable,
                                                               const char* name) {
  std::string path;
  const std::optional<std::string> named = environment(variable);
  if (named.has_value()) {
    path = *named;
  } else if (const auto home = environment("HOME"); home.has_value()) {
    path = absl::StrCat(*home, "/.aws/", name);
  } else {
    return std::make_pair(path, path);
  }
  absl::StatusOr<std::string> text = ReadHostFile(path);
  if (text.ok()) return std::make_pair(path, *std::move(text));
  if (absl::IsNotFound(text.status()) && !named.has_value()) return std::make_pair(path, std::string());
  return absl::InvalidArgumentError(absl::StrCat("the file of ", named.has_value() ? variable : "a profile",
                                                 " cannot be read: ", text.status().message()));
}

std::optional<std::string> Find(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  if (found == settings.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

absl::StatusOr<AwsSections> ParseAwsFile(absl::string_view text, absl::string_view path) {
  AwsSections sections;
  Settings* section = nullptr;
  std::string outer;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view clean = absl::StripAsciiWhitespace(line);
    const bool indented = !line.empty() && absl::ascii_isspace(line.front());
    if (clean.empty() || clean.front() == '#' || clean.front() == ';') continue;
    const auto bad = [&](absl::string_view why) {  // without the line: it may hold a secret
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", why));
    };
    if (clean.front() == '[') {
      const size_t end = clean.find(']');
      if (end == absl::string_view::npos) return bad("a section without ']'");
      section = &sections[std::string(absl::StripAsciiWhitespace(clean.substr(1, end - 1)))];
      outer.clear();
      continue;
    }
    const size_t equals = clean.find('=');
    if (equals == absl::string_view::npos) return bad("expected name = value or [section]");
    if (section == nullptr) return bad("a setting before the first [section]");
    const std::string name = absl::AsciiStrToLower(absl::StripAsciiWhitespace(clean.substr(0, equals)));
    absl::string_view value = clean.substr(equals + 1);
    if (const size_t comment = value.find(" #"); comment != absl::string_view::npos) value = value.substr(0, comment);
    value = absl::StripAsciiWhitespace(value);
    if (indented && !outer.empty()) {
      (*section)[absl::StrCat(outer, ".", name)] = std::string(value);
      continue;
    }
    outer = value.empty() ? name : "";
    (*section)[name] = std::string(value);
  }
  return sections;
}

absl::StatusOr<Settings> ReadAwsProfile(const Environment& environment) {
  const std::string profile = environment("AWS_PROFILE").value_or("default");
  LS_ASSIGN_OR_RETURN(const auto config, ReadShared(environment, "AWS_CONFIG_FILE", "config"));
  LS_ASSIGN_OR_RETURN(const auto secrets, ReadShared(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"));
  LS_ASSIGN_OR_RETURN(AwsSections in_config, ParseAwsFile(config.second, config.first));
  LS_ASSIGN_OR_RETURN(AwsSections in_secrets, ParseAwsFile(secrets.second, secrets.first));
  Settings settings;
  bool found = false;
  const auto add = [&](AwsSections& sections, const std::string& name) {
    const auto section = sections.find(name);
    if (section == sections.end()) return;
    found = true;
    for (const auto& [key, value] : section->second) settings[key] = value;
  };
  if (profile == "default") add(in_config, profile);
  add(in_config, absl::StrCat("profile ", profile));
  add(in_secrets, profile);
  if (!found && environment("AWS_PROFILE").has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("AWS_PROFILE is '", profile, "', and neither '", config.first,
                                                   "' nor '", secrets.first, "' has that profile"));
  }
  return settings;
}

absl::StatusOr<S3Settings> ReadS3Settings(const Environment& environment) {
  LS_ASSIGN_OR_RETURN(const Settings profile, ReadAwsProfile(environment));
  const auto first = [&](const std::vector<const char*>& variables, const std::string& name) {
    for (const char* const variable : variables) {
      if (auto value = environment(variable); value.has_value()) return *value;
    }
    return Find(profile, name).value_or("");
  };
  S3Settings settings;
  settings.region = first({"AWS_REGION", "AWS_DEFAULT_REGION"}, "region");
  settings.endpoint = first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, "endpoint_url");
  settings.ca_bundle = first({"AWS_CA_BUNDLE"}, "ca_bundle");
  while (absl::EndsWith(settings.endpoint, "/")) settings.endpoint.pop_back();
  if (!settings.endpoint.empty() && !absl::StartsWith(settings.endpoint, "http://") &&
      !absl::StartsWith(settings.endpoint, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the endpoint of S3 is '", settings.endpoint, "'; write AWS_ENDPOINT_URL as https://host[:port]"));
  }
  const std::string style = first({"LOCKSTEP_S3_ADDRESSING"}, "s3.addressing_style");
  if (style == "path" || style == "virtual") {
    settings.path_style = style == "path";
  } else if (!style.empty() && style != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("the addressing of S3 is '", style, "'; set LOCKSTEP_S3_ADDRESSING to path, virtual or auto"));
  }
  return settings;
}

}  // namespace lockstep
