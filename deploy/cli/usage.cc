#include "deploy/cli/usage.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/suggest.h"

namespace lockstep::cli {
namespace {

constexpr absl::string_view kProgram = "lockstep";

// Groups of options are commands without a name.
bool IsCommand(const CLI::App* app) { return !app->get_name().empty() && !app->get_group().empty(); }

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(IsCommand)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  const auto groups = app.get_subcommands([](const CLI::App* group) { return group->get_name().empty(); });
  for (const CLI::App* group : groups) {
    for (std::string& name : OptionNames(*group)) names.push_back(std::move(name));
  }
  return names;
}

absl::Status NoSuchCommand(const std::string& program, const std::string& word, const CLI::App& app) {
  const std::vector<std::string> names = CommandNames(app);
  const std::string near = job::DidYouMean(word, names);
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is no command of ", program,
                   near.empty() ? absl::StrCat("; it has ", absl::StrJoin(names, ", ")) : near));
}

// The command that was given, and how it was called.
const CLI::App* GivenCommand(const CLI::App& app, std::string& called) {
  const CLI::App* command = &app;
  called = std::string(kProgram);
  for (;;) {
    const std::vector<CLI::App*> given = command->get_subcommands();
    const auto next = std::find_if(given.begin(), given.end(), IsCommand);
    if (next == given.end()) return command;
    command = *next;
    absl::StrAppend(&called, " ", command->get_name());
  }
}

std::string Unknown(const CLI::App& command, const std::string& called, const std::vector<std::string>& words) {
  std::vector<std::string> options;
  for (const std::string& word : words) {
    if (!absl::StartsWith(word, "-")) continue;
    const std::string name = word.substr(0, word.find('='));
    options.push_back(absl::StrCat(name, job::DidYouMean(name, OptionNames(command))));
  }
  // A value behind an unknown option is left over too, and no mistake of its own.
  if (!options.empty()) {
    return absl::StrCat("unknown option", options.size() == 1 ? " " : "s ", absl::StrJoin(options, " "));
  }
  if (!CommandNames(command).empty()) return std::string(NoSuchCommand(called, words[0], command).message());
  return absl::StrCat("it does not take ", absl::StrJoin(words, " "));
}

}  // namespace

absl::StatusOr<std::string> HelpFor(const CLI::App& app, const std::vector<std::string>& path) {
  const CLI::App* command = &app;
  std::string called(kProgram);
  for (const std::string& word : path) {
    const auto found = command->get_subcommands(
        [&word](const CLI::App* candidate) { return IsCommand(candidate) && candidate->get_name() == word; });
    if (found.empty()) return NoSuchCommand(called, word, *command);
    command = found[0];
    absl::StrAppend(&called, " ", word);
  }
  // help() of an application is that of the command that was given on its line.
  return command->get_formatter()->make_help(command, called, CLI::AppFormatMode::Normal);
}

std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error) {
  std::string called;
  const CLI::App* const command = GivenCommand(app, called);
  const std::vector<std::string> left_over = app.remaining(/*recurse=*/true);
  const int code = error.get_exit_code();
  const bool about_words =
      code == static_cast<int>(CLI::ExitCodes::ExtrasError) || code == static_cast<int>(CLI::ExitCodes::RequiredError);
  const std::string what =
      about_words && !left_over.empty() ? Unknown(*command, called, left_over) : std::string(error.what());
  const std::string help = absl::StrCat(kProgram, " help", called.substr(kProgram.size()));
  return absl::StrCat(called, ": ", what, absl::EndsWith(what, "?") ? " See `" : "; see `", help, "`");
}

}  // namespace lockstep::cli
