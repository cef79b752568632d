#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "deploy/cli/completion.h"

namespace lockstep::cli {
namespace {

// PROGRAM, COMMANDS, VALUES and WORDS are replaced. `=` ends a word of COMP_WORDS and is one itself.
constexpr char kScript[] =
    R"sh(# Completes the words of `PROGRAM` in bash. Made by `PROGRAM completion bash`; to load it:
#   source <(PROGRAM completion bash)
_PROGRAM() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local at=PROGRAM asked='' commands='' options='' values='' files='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${COMP_WORDS[i]}" in
      'PROGRAM help') asked=1 ;;
COMMANDS    esac
  done
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  [[ -n $asked ]] || case "$at $previous" in
VALUES  esac
  case "$at" in
WORDS  esac
  if [[ -n $asked ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
  elif [[ $current == -* || -z $commands$values$files ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $files ]]; then
    _PROGRAM_files "$current"
  else
    COMPREPLY=($(compgen -W "$commands $values" -- "$current"))
  fi
}

_PROGRAM_files() {
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null || true
}

complete -F _PROGRAM PROGRAM
)sh";

std::string BashQuoted(const CommandText& command, const std::string& name) {
  return absl::StrCat("'", command.called, " ", name, "'");
}

// What the word after an option with a value is completed to, for every such option.
std::string Values(const CommandText& program) {
  std::vector<std::string> numbers;
  std::vector<std::string> files;
  std::string text;
  for (const CommandText* const command : AllCommands(program)) {
    for (const OptionText& option : command->options) {
      if (option.value == ValueKind::kNone) continue;
      std::vector<std::string> places;
      for (const std::string& name : option.names) places.push_back(BashQuoted(*command, name));
      if (!option.choices.empty()) {
        absl::StrAppend(&text, "    ", absl::StrJoin(places, " | "), ") COMPREPLY=($(compgen -W '",
                        absl::StrJoin(option.choices, " "), "' -- \"$current\")); return ;;\n");
        continue;
      }
      std::vector<std::string>& others = option.value == ValueKind::kNumber ? numbers : files;
      others.insert(others.end(), places.begin(), places.end());
    }
  }
  if (!numbers.empty()) absl::StrAppend(&text, "    ", absl::StrJoin(numbers, " | \\\n      "), ") return ;;\n");
  if (!files.empty()) {
    absl::StrAppend(&text, "    ", absl::StrJoin(files, " | \\\n      "), ") _PROGRAM_files \"$current\"; return ;;\n");
  }
  return text;
}

std::string Words(const CommandText& command) {
  std::vector<std::string> commands;
  std::vector<std::string> options;
  std::vector<std::string> values;
  bool files = false;
  for (const CommandText& below : command.commands) commands.push_back(below.name);
  for (const OptionText& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
  }
  for (const OptionText& argument : command.arguments) {
    values.insert(values.end(), argument.choices.begin(), argument.choices.end());
    files = files || argument.choices.empty();
  }
  return absl::StrCat("    '", command.called, "') commands='", absl::StrJoin(commands, " "), "' options='",
                      absl::StrJoin(options, " "), "' values='", absl::StrJoin(values, " "),
                      "' files=", files ? "1" : "''", " ;;\n");
}

}  // namespace

std::string BashCompletion(const CommandText& program) {
  std::vector<std::string> below;
  std::string words;
  for (const CommandText* const command : AllCommands(program)) {
    words += Words(*command);
    const bool helps = command->called == absl::StrCat(program.name, " help");
    if (command != &program && !helps) below.push_back(absl::StrCat("'", command->called, "'"));
  }
  const std::string commands =
      below.empty() ? "" : absl::StrCat("      ", absl::StrJoin(below, " | "), ") at=\"$at ${COMP_WORDS[i]}\" ;;\n");
  const std::string script = absl::StrReplaceAll(kScript, {{"COMMANDS    ", absl::StrCat(commands, "    ")},
                                                           {"VALUES  ", absl::StrCat(Values(program), "  ")},
                                                           {"WORDS  ", absl::StrCat(words, "  ")}});
  return absl::StrReplaceAll(script, {{"PROGRAM", program.name}});
}

}  // namespace lockstep::cli
