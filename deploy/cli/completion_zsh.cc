#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "deploy/cli/completion.h"

namespace lockstep::cli {
namespace {

// `text` within single quotes, where `specials` are escaped for _arguments or _describe.
std::string Escaped(const std::string& text, const std::string& specials) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (c == '\\' || specials.find(c) != std::string::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string Function(const CommandText& command) {
  return absl::StrCat("_", absl::StrReplaceAll(command.called, {{" ", "_"}}));
}

// ":what:action", the completion of a value.
std::string Action(const OptionText& option) {
  const std::string what = absl::StrCat(":", option.names.back(), ":");
  if (!option.choices.empty()) return absl::StrCat(what, "(", absl::StrJoin(option.choices, " "), ")");
  return absl::StrCat(what, option.value == ValueKind::kNumber ? " " : "_files");
}

std::string ZshOption(const OptionText& option) {
  const std::string described = absl::StrCat("'[", Escaped(option.description, "[]:"), "]");
  const bool takes = option.value != ValueKind::kNone;
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    const bool is_long = name.compare(0, 2, "--") == 0;
    names.push_back(absl::StrCat(name, takes ? (is_long ? "=" : "+") : ""));
  }
  const std::string all = names.size() == 1 ? names[0] : absl::StrCat("{", absl::StrJoin(names, ","), "}");
  const std::string once = option.repeated ? "'*'" : absl::StrCat("'(", absl::StrJoin(option.names, " "), ")'");
  return absl::StrCat("    ", once, all, described, takes ? Action(option) : "", "' \\\n");
}

std::string Options(const CommandText& command) {
  std::string text;
  for (const OptionText& option : command.options) text += ZshOption(option);
  return text;
}

std::string Leaf(const CommandText& command) {
  std::string text = absl::StrCat(Function(command), "() {\n  _arguments \\\n", Options(command));
  for (const OptionText& argument : command.arguments) {
    absl::StrAppend(&text, "    '", argument.repeated ? "*" : "", Action(argument), "' \\\n");
  }
  text.resize(text.size() - 3);  // the last line goes on nowhere
  return absl::StrCat(text, "\n}\n");
}

// *:: leaves the words from the command on, which is how the function of a command, or that of the program, finds them.
std::string CommandBranch(const CommandText& command, bool is_program) {
  std::string commands;
  std::string calls;
  for (const CommandText& below : command.commands) {
    absl::StrAppend(&commands, "        '", below.name, ":", Escaped(below.description, ":"), "'\n");
    const bool helps = is_program && below.name == "help";
    absl::StrAppend(&calls, "        ", below.name, ") ", helps ? Function(command) : Function(below),
                    " && result=0 ;;\n");
  }
  return absl::StrCat(Function(command), "() {\n",
                      "  local curcontext=$curcontext state line result=1\n"
                      "  local -a commands\n"
                      "  local -A opt_args\n"
                      "  _arguments -C \\\n",
                      Options(command),
                      "    '1: :->command' \\\n"
                      "    '*:: :->rest' && result=0\n"
                      "  case $state in\n"
                      "    command)\n"
                      "      commands=(\n",
                      commands,
                      "      )\n"
                      "      _describe -t commands command commands && result=0 ;;\n"
                      "    rest)\n"
                      "      case $line[1] in\n",
                      calls,
                      "      esac ;;\n"
                      "  esac\n"
                      "  return result\n"
                      "}\n");
}

}  // namespace

std::string ZshCompletion(const CommandText& program) {
  std::string text =
      absl::StrCat("#compdef ", program.name, "\n# Completes the words of `", program.name, "` in zsh. Made by `",
                   program.name, " completion zsh`; to load it:\n#   source <(", program.name, " completion zsh)\n");
  for (const CommandText* const command : AllCommands(program)) {
    absl::StrAppend(&text, "\n",
                    command->commands.empty() ? Leaf(*command) : CommandBranch(*command, command == &program));
  }
  const std::string function = Function(program);
  return absl::StrCat(text, "\nif [[ $funcstack[1] == ", function, " ]]; then\n  ", function,
                      " \"$@\"\nelse\n  compdef ", function, " ", program.name, "\nfi\n");
}

}  // namespace lockstep::cli
