#include "deploy/cli/usage.h"

#include <catch2/catch.hpp>
#include <memory>

namespace lockstep::cli {
namespace {

using Catch::Matchers::Contains;

// A command line of a few commands; `Explained` is what it says about words that it does not take.
struct TypedLine {
  TypedLine() : app("Trains.") {
    app.require_subcommand(1);
    CLI::App* run = app.add_subcommand("run", "Runs");
    run->add_option("job", text, "The job")->required();
    run->add_option("--workers", number, "How many");
    run->add_option("--hidden", number)->group("");
    CLI::App* status = app.add_subcommand("status", "How it is");
    status->add_option_group("place", "Which")->add_option("--dir", text, "Where");
    CLI::App* checkpoint = app.add_subcommand("checkpoint", "Looks");
    checkpoint->require_subcommand(1);
    checkpoint->add_subcommand("verify", "Reads every byte");
  }

  std::string Explained(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return ExplainUsage(app, error);
    }
    return "";
  }

  CLI::App app;
  std::string text;
  int number = 0;
};

TEST_CASE("usage: an unknown command is answered with the nearest one", "[cli]") {
  CHECK_THAT(TypedLine().Explained({"rnu"}), Contains("'rnu' is no command of lockstep; did you mean 'run'?"));
  CHECK_THAT(TypedLine().Explained({"train"}), Contains("it has run, status, checkpoint"));
  CHECK_THAT(TypedLine().Explained({"checkpoint", "verfy"}),
             Contains("'verfy' is no command of lockstep checkpoint; did you mean 'verify'?"));
}

TEST_CASE("usage: unknown options are named in the order given, without their values", "[cli]") {
  const std::string text = TypedLine().Explained({"run", "a.yaml", "--log", "json", "--wrokers=3"});

  CHECK(text == "lockstep run: unknown options --log --wrokers; did you mean '--workers'? See `lockstep help run`");
  CHECK(TypedLine().Explained({"run", "a.yaml", "--wrokers=3", "--log"}) ==
        "lockstep run: unknown options --wrokers; did you mean '--workers'? --log; see `lockstep help run`");
  CHECK(TypedLine().Explained({"run", "a.yaml", "--log"}) ==
        "lockstep run: unknown option --log; see `lockstep help run`");
  CHECK_THAT(TypedLine().Explained({"status", "--dri", "x"}), Contains("--dri; did you mean '--dir'?"));
  CHECK_THAT(TypedLine().Explained({"run", "a.yaml", "--hiden", "1"}), !Contains("did you mean"));
  CHECK_THAT(TypedLine().Explained({"run", "a.yaml", "b.yaml", "c.yaml"}), Contains("it does not take b.yaml c.yaml"));
}

TEST_CASE("usage: what is missing is named with the command that needs it", "[cli]") {
  CHECK_THAT(TypedLine().Explained({"run"}), Contains("lockstep run: job is required; see `lockstep help run`"));
  CHECK_THAT(TypedLine().Explained({"rnu"}), Contains("'run'? See `lockstep help`"));
}

TEST_CASE("usage: help is there for every command and its parts", "[cli]") {
  TypedLine line;
  line.app.add_subcommand("help", "Helps");
  CHECK(line.Explained({"help"}).empty());  // as the command calls it: with a command on the line
  CHECK_THAT(HelpFor(line.app, {}).value(), Contains("checkpoint"));
  CHECK_THAT(HelpFor(line.app, {"run"}).value(), Contains("--workers") && Contains("lockstep run"));
  CHECK_THAT(HelpFor(line.app, {"checkpoint", "verify"}).value(), Contains("Reads every byte"));
  CHECK_THAT(std::string(HelpFor(line.app, {"statsu"}).status().message()), Contains("did you mean 'status'?"));
}

}  // namespace
}  // namespace lockstep::cli
