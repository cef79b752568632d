// The command line as plain data, from which completions and manual pages are made.
//
// Threading: immutable.
#ifndef LOCKSTEP_DEPLOY_CLI_COMMAND_TREE_H_
#define LOCKSTEP_DEPLOY_CLI_COMMAND_TREE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lockstep::cli {

enum class ValueKind : uint8_t {
  kNone,    // a flag
  kText,    // often a path
  kNumber,  // integers and fractions
};

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; of a positional argument its one name, "job"
  std::string description;
  ValueKind value = ValueKind::kText;
  std::vector<std::string> choices;  // the allowed values; empty: any
  std::string default_value;         // empty: none is shown
  bool required = false;
  bool repeated = false;  // it may be given more than once
};

struct CommandText {
  std::string called;  // "lockstep checkpoint ls"
  std::string name;    // "ls"
  std::string description;
  std::vector<OptionText> options;    // with those of its groups, without hidden ones
  std::vector<OptionText> arguments;  // in the order in which they are given
  std::vector<CommandText> commands;  // in the order of the help
};

// Describes `app`, which is called `called` on the command line. Hidden commands and options are left out.
CommandText DescribeCommands(const CLI::App& app, const std::string& called);

// `command` and all below it, parents first.
std::vector<const CommandText*> AllCommands(const CommandText& command);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COMMAND_TREE_H_
