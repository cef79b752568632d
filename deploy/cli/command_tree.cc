#include "deploy/cli/command_tree.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::cli {
namespace {

// CLI11 writes the values of IsMember behind the type: "TEXT:{read,join,admin}".
std::vector<std::string> Choices(const std::string& type) {
  const size_t open = type.find('{');
  const size_t close = type.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

ValueKind Kind(const CLI::Option& option, const std::string& type) {
  if (option.get_items_expected_max() == 0) return ValueKind::kNone;
  for (const char* const number : {"INT", "UINT", "FLOAT"}) {
    if (absl::StartsWith(type, number)) return ValueKind::kNumber;
  }
  return ValueKind::kText;
}

OptionText Describe(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames()) text.names.push_back(absl::StrCat("--", name));
  if (text.names.empty()) text.names.push_back(option.get_name(/*positional=*/true));
  const std::string type = option.get_type_name();
  text.description = option.get_description();
  text.value = Kind(option, type);
  text.choices = Choices(type);
  text.default_value = option.get_default_str();
  text.required = option.get_required();
  text.repeated = option.get_items_expected_max() > 1;
  return text;
}

// Those of `app` itself and of its groups of options, which are commands without a name and have a --help of their own.
void AddOptions(const CLI::App& app, bool is_group, CommandText& text) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_group().empty() || (is_group && option == app.get_help_ptr())) continue;
    (option->nonpositional() ? text.options : text.arguments).push_back(Describe(*option));
  }
  for (const CLI::App* const group : app.get_subcommands([](const CLI::App* app) { return app->get_name().empty(); })) {
    AddOptions(*group, /*is_group=*/true, text);
  }
}

void Collect(const CommandText& command, std::vector<const CommandText*>& all) {
  all.push_back(&command);
  for (const CommandText& below : command.commands) Collect(below, all);
}

}  // namespace

CommandText DescribeCommands(const CLI::App& app, const std::string& called) {
  CommandText text;
  text.called = called;
  text.name = called.substr(called.rfind(' ') + 1);
  text.description = app.get_description();
  AddOptions(app, /*is_group=*/false, text);
  const auto shown = [](const CLI::App* app) { return !app->get_name().empty() && !app->get_group().empty(); };
  for (const CLI::App* const command : app.get_subcommands(shown)) {
    text.commands.push_back(DescribeCommands(*command, absl::StrCat(called, " ", command->get_name())));
  }
  return text;
}

std::vector<const CommandText*> AllCommands(const CommandText& command) {
  std::vector<const CommandText*> all;
  Collect(command, all);
  return all;
}

}  // namespace lockstep::cli
