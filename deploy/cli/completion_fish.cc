#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "deploy/cli/completion.h"

namespace lockstep::cli {
namespace {

// PROGRAM and COMMANDS are replaced. __PROGRAM_at COMMAND: the words before the cursor call COMMAND. __PROGRAM_below:
// they call it, or ask for its help.
constexpr char kHead[] = R"sh(# Completes the words of `PROGRAM` in fish. Made by `PROGRAM completion fish`; to load it:
#   PROGRAM completion fish | source
function __PROGRAM_words
    set -l at PROGRAM
    set -l how called
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if test "$at $word" = 'PROGRAM help'
            set how asked
        else if contains -- "$at $word" COMMANDS
            set at "$at $word"
        end
    end
    echo $how
    echo $at
end

function __PROGRAM_at
    set -l place (__PROGRAM_words)
    test "$place[1]" = called -a "$place[2]" = "$argv[1]"
end

function __PROGRAM_below
    set -l place (__PROGRAM_words)
    test "$place[2]" = "$argv[1]"
end

complete -c PROGRAM -f
)sh";

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Line(const CommandText& command, const char* condition) {
  return absl::StrCat("complete -c PROGRAM -n \"__PROGRAM_", condition, " '", command.called, "'\"");
}

std::string FishOption(const OptionText& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.compare(0, 2, "--") == 0;
    absl::StrAppend(&text, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
  }
  if (!option.choices.empty()) {
    absl::StrAppend(&text, " -x -a ", FishQuoted(absl::StrJoin(option.choices, " ")));
  } else if (option.value == ValueKind::kNumber) {
    text += " -x";
  } else if (option.value == ValueKind::kText) {
    text += " -r -F";
  }
  return absl::StrCat(text, " -d ", FishQuoted(option.description), "\n");
}

}  // namespace

std::string FishCompletion(const CommandText& program) {
  std::string lines;
  std::vector<std::string> below;
  const std::string help = absl::StrCat(program.name, " help");
  for (const CommandText* const command : AllCommands(program)) {
    if (command->called == help) continue;
    if (command != &program) below.push_back(FishQuoted(command->called));
    for (const CommandText& next : command->commands) {
      absl::StrAppend(&lines, Line(*command, "below"), " -a ", next.name, " -d ", FishQuoted(next.description), "\n");
    }
    for (const OptionText& option : command->options) absl::StrAppend(&lines, Line(*command, "at"), FishOption(option));
    for (const OptionText& argument : command->arguments) {
      const std::string what =
          argument.choices.empty() ? " -F" : absl::StrCat(" -a ", FishQuoted(absl::StrJoin(argument.choices, " ")));
      absl::StrAppend(&lines, Line(*command, "at"), what, "\n");
    }
  }
  const std::string head = absl::StrReplaceAll(kHead, {{"COMMANDS", below.empty() ? "''" : absl::StrJoin(below, " ")}});
  return absl::StrReplaceAll(absl::StrCat(head, lines), {{"PROGRAM", program.name}});
}

}  // namespace lockstep::cli
