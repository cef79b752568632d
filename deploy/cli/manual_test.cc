#include "deploy/cli/manual.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"
#include "deploy/cli/sample_commands.h"

namespace lockstep::cli {
namespace {

using Catch::Matchers::Contains;

std::vector<ManualPage> Pages() {
  return ManualPages(DescribeCommands(SampleCommands().app, "lockstep"), "lockstep 1.2.3", "2026-01-31");
}

std::string PageOf(const std::string& name) {
  for (const ManualPage& page : Pages()) {
    if (page.name == name) return page.text;
  }
  throw std::runtime_error("no page " + name);
}

TEST_CASE("manual: every command that is shown has its page", "[cli]") {
  std::vector<std::string> names;
  for (const ManualPage& page : Pages()) names.push_back(page.name);

  CHECK(names == std::vector<std::string>{"lockstep.1", "lockstep-run.1", "lockstep-token.1", "lockstep-checkpoint.1",
                                          "lockstep-checkpoint-ls.1", "lockstep-checkpoint-verify.1",
                                          "lockstep-completion.1", "lockstep-help.1"});
}

TEST_CASE("manual: a page has what the command takes, and how it ends", "[cli]") {
  const std::string page = PageOf("lockstep-run.1");

  CHECK_THAT(page, Contains(".TH \"LOCKSTEP\\-RUN\" 1 \"2026-01-31\" \"lockstep 1.2.3\"\n"));
  CHECK_THAT(page, Contains("lockstep\\-run \\- Runs a job: \\fBlockstep run job.yaml\\fR\n"));
  CHECK_THAT(page, Contains("\\fBlockstep run\\fR [\\fIOPTION\\fR ...] \\fIJOB\\fR\n"));
  CHECK_THAT(page, Contains("\\fB\\-\\-workers\\fR \\fIN\\fR\nHow many [at most 9]. Default: 4.\n"));
  CHECK_THAT(page, Contains("\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIVALUE\\fR\n"));
  CHECK_THAT(page, Contains("A setting: key=value. May be given more than once.\n"));
  CHECK_THAT(page, Contains("not even \\en."));
  CHECK_THAT(page, !Contains("hidden"));
  CHECK_THAT(page, Contains(absl::StrCat("\\fB", static_cast<int>(kExitBadJob), "\\fR\nThe job is wrong")));
  CHECK_THAT(PageOf("lockstep-token.1"), Contains("\\fB\\-\\-role\\fR \\fIread|join|admin\\fR\nWhose. Required.\n"));
}

TEST_CASE("manual: pages lead to each other", "[cli]") {
  CHECK_THAT(PageOf("lockstep.1"), Contains(".BR lockstep\\-checkpoint (1)\nLooks at checkpoints.\n"));
  CHECK_THAT(PageOf("lockstep-checkpoint.1"), Contains(".BR lockstep\\-checkpoint\\-ls (1)\n"));
  CHECK_THAT(PageOf("lockstep-checkpoint-ls.1"),
             Contains(".SH SEE ALSO\n.BR lockstep (1) ,\n.BR lockstep\\-checkpoint (1)\n"));
}

TEST_CASE("manual: text is no request and no escape", "[cli]") {
  CHECK(RoffText(".SH a-b 'c' \\d `e-f`") == "\\&.SH a\\-b 'c' \\ed \\fBe\\-f\\fR");
  CHECK(RoffText("'c'") == "\\&'c'");
}

TEST_CASE("manual: mandoc finds nothing wrong with a page", "[cli]") {
  if (std::system("command -v mandoc >/dev/null 2>&1") != 0) {
    std::cout << "SKIPPED: mandoc is not installed\n";
    return;
  }
  const std::string folder = absl::StrCat(std::getenv("TEST_TMPDIR"), "/manual.", getpid());
  std::filesystem::create_directories(folder);
  for (const ManualPage& page : Pages()) std::ofstream(folder + "/" + page.name) << page.text;

  const int code = std::system(absl::StrCat("cd '", folder, "' && mandoc -T lint -W warning *.1").c_str());

  CHECK(code == 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::cli
