#include "deploy/cli/command_tree.h"

#include <catch2/catch.hpp>

#include "deploy/cli/sample_commands.h"

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

Words Called(const CommandText& program) {
  Words called;
  for (const CommandText* const command : AllCommands(program)) called.push_back(command->called);
  return called;
}

const CommandText& Find(const CommandText& program, const std::string& called) {
  for (const CommandText* const command : AllCommands(program)) {
    if (command->called == called) return *command;
  }
  throw std::runtime_error("no command " + called);
}

const OptionText& Find(const std::vector<OptionText>& options, const std::string& name) {
  for (const OptionText& option : options) {
    if (option.names.back() == name) return option;
  }
  throw std::runtime_error("no option " + name);
}

TEST_CASE("command tree: every command is there, parents first, hidden ones are not", "[cli]") {
  const SampleCommands sample;

  const CommandText program = DescribeCommands(sample.app, "lockstep");

  CHECK(Called(program) == Words{"lockstep", "lockstep run", "lockstep token", "lockstep checkpoint",
                                 "lockstep checkpoint ls", "lockstep checkpoint verify", "lockstep completion",
                                 "lockstep help"});
  CHECK(Find(program, "lockstep checkpoint ls").name == "ls");
  CHECK(Find(program, "lockstep checkpoint ls").description == "Lists them");
}

TEST_CASE("command tree: options come with kind, choices and default, hidden ones not at all", "[cli]") {
  const SampleCommands sample;

  const CommandText program = DescribeCommands(sample.app, "lockstep");

  const CommandText& run = Find(program, "lockstep run");
  REQUIRE(run.options.size() == 5);  // --help, too
  CHECK(Find(run.options, "--help").names == Words{"-h", "--help"});
  CHECK(Find(run.options, "--help").value == ValueKind::kNone);
  CHECK(Find(run.options, "--workers").value == ValueKind::kNumber);
  CHECK(Find(run.options, "--workers").default_value == "4");
  CHECK(Find(run.options, "--output").names == Words{"-o", "--output"});
  CHECK(Find(run.options, "--output").value == ValueKind::kText);
  CHECK_FALSE(Find(run.options, "--output").repeated);
  CHECK(Find(run.options, "--set").repeated);
  CHECK(Find(run.options, "--quiet").value == ValueKind::kNone);
  const CommandText& token = Find(program, "lockstep token");
  CHECK(Find(token.options, "--role").choices == Words{"read", "join", "admin"});
  CHECK(Find(token.options, "--role").required);
  CHECK(Find(token.options, "--dir").choices.empty());  // of a group
}

TEST_CASE("command tree: arguments are apart from options", "[cli]") {
  const SampleCommands sample;

  const CommandText program = DescribeCommands(sample.app, "lockstep");

  const CommandText& run = Find(program, "lockstep run");
  REQUIRE(run.arguments.size() == 1);
  CHECK(run.arguments[0].names == Words{"job"});
  CHECK(run.arguments[0].required);
  CHECK(Find(program, "lockstep checkpoint ls").arguments.at(0).repeated);
  CHECK_FALSE(Find(program, "lockstep checkpoint ls").arguments.at(0).required);
  CHECK(Find(program, "lockstep completion").arguments.at(0).choices == Words{"bash", "zsh"});
}

}  // namespace
}  // namespace lockstep::cli
