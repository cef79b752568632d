// A small command line with one item of each kind, for tests of code that describes command lines.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_DEPLOY_CLI_SAMPLE_COMMANDS_H_
#define LOCKSTEP_DEPLOY_CLI_SAMPLE_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lockstep::cli {

struct SampleCommands {
  SampleCommands() {
    CLI::App* const run = app.add_subcommand("run", "Runs a job: `lockstep run job.yaml`");
    run->add_option("job", text, "The job's file")->required();
    run->add_option("--workers", number, "How many [at most 9]")->check(CLI::Range(1, 9))->capture_default_str();
    run->add_option("--set", list, "A setting: key=value")->allow_extra_args(false);
    run->add_option("-o,--output", text, "Where to");
    run->add_option("--hidden", number)->group("");
    run->add_flag("--quiet", flag, "Says \"nothing\"; not even \\n");
    app.add_subcommand("secret", "Hidden")->group("");
    CLI::App* const token = app.add_subcommand("token", "Makes a token");
    token->add_option("--role", text, "Whose")->required()->check(CLI::IsMember({"read", "join", "admin"}));
    token->add_option_group("place", "Which job")->add_option("--dir", text, "Where it is");
    CLI::App* const checkpoint = app.add_subcommand("checkpoint", "Looks at checkpoints");
    CLI::App* const ls = checkpoint->add_subcommand("ls", "Lists them");
    ls->add_option("dirs", list, "Where they are");
    checkpoint->add_subcommand("verify", "Reads them");
    CLI::App* const shell = app.add_subcommand("completion", "Prints a script");
    shell->add_option("shell", text, "For which")->required()->check(CLI::IsMember({"bash", "zsh"}));
    app.add_subcommand("help", "Helps")->add_option("command", list, "With what");
  }

  CLI::App app{"Trains.", "lockstep"};
  std::string text;
  std::vector<std::string> list;
  int number = 4;
  bool flag = false;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SAMPLE_COMMANDS_H_
