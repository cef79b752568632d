#include "deploy/cli/completion.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "deploy/cli/sample_commands.h"

namespace lockstep::cli {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

CommandText Sample() { return DescribeCommands(SampleCommands().app, "lockstep"); }

bool IsInstalled(const std::string& shell) {
  if (std::system(absl::StrCat("command -v ", shell, " >/dev/null 2>&1").c_str()) == 0) return true;
  std::cout << "SKIPPED: " << shell << " is not installed\n";
  return false;
}

// A folder with two files and the script, where shells run.
class CompletedFolder {
 public:
  explicit CompletedFolder(const std::string& script)
      : path_(absl::StrCat(std::getenv("TEST_TMPDIR"), "/completion.", getpid())) {
    std::filesystem::create_directories(path_);
    std::ofstream(path_ + "/script") << script;
    std::ofstream(path_ + "/job a.yaml") << "";
    std::ofstream(path_ + "/job.yaml") << "";
  }
  ~CompletedFolder() { std::filesystem::remove_all(path_); }

  // What `shell` prints that runs `text`, both outputs; the exit code is 0.
  std::string Run(const std::string& shell, const std::string& text) const {
    std::ofstream(path_ + "/text") << text;
    FILE* const pipe = popen(absl::StrCat("cd '", path_, "' && HOME=. ", shell, " ./text 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string output;
    std::array<char, 4096> part{};
    for (size_t n = 0; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) output.append(part.data(), n);
    INFO(shell << " " << text << ": " << output);
    CHECK(pclose(pipe) == 0);
    return output;
  }

 private:
  const std::string path_;
};

Words LinesOf(const std::string& text) { return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n'); }

// What bash offers for the last of `words`, which it has split at `=`.
Words Bash(const Words& words) {
  const CompletedFolder folder(BashCompletion(Sample()));
  std::string array;
  for (const std::string& word : words) absl::StrAppend(&array, "'", word, "' ");
  return LinesOf(
      folder.Run("bash -u", absl::StrCat("source ./script; COMP_WORDS=(", array, "); COMP_CWORD=", words.size() - 1,
                                         "; _lockstep; printf '%s\\n' \"${COMPREPLY[@]-}\"")));
}

// What fish offers for the last word of `line`, without descriptions.
Words Fish(const std::string& line) {
  const CompletedFolder folder(FishCompletion(Sample()));
  Words words = LinesOf(folder.Run("fish --no-config", absl::StrCat("source ./script; complete -C '", line, "'")));
  for (std::string& word : words) word = word.substr(0, word.find('\t'));
  return words;
}

// What zsh shows when tab is pressed behind `line`.
std::string Zsh(const std::string& line) {
  const CompletedFolder folder(ZshCompletion(Sample()));
  return folder.Run("timeout 20 zsh -f", absl::StrCat(R"(
    zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PS1=; unsetopt zle_bracketed_paste 2>/dev/null; LISTMAX=0; stty cols 200 rows 100; autoload -Uz compinit'
    zpty -w shell 'compinit -D -u; source ./script; bindkey "^I" list-choices; zle-line-init() { zle -M "rea""dy" }; zle -N zle-line-init'
    zpty -r shell text '*ready*'
    zpty -w -n shell ')",
                                                      line, R"('$'\t\x15'"echo do''ne"$'\n'
    zpty -r shell text '*done*'
    print -r -- "$text"
    zpty -d shell)"));
}

TEST_CASE("completion: bash is offered commands, and those below a command", "[cli]") {
  CHECK(Bash({"lockstep", ""}) == Words{"run", "token", "checkpoint", "completion", "help"});
  CHECK(Bash({"lockstep", "co"}) == Words{"completion"});
  CHECK(Bash({"lockstep", "checkpoint", ""}) == Words{"ls", "verify"});
  CHECK(Bash({"lockstep", "help", "checkpoint", "v"}) == Words{"verify"});
  CHECK(Bash({"lockstep", "help", "run", ""}) == Words{""});
}

TEST_CASE("completion: bash is offered options, never hidden ones", "[cli]") {
  CHECK(Bash({"lockstep", "run", "-"}) == Words{"-h", "--help", "--workers", "--set", "-o", "--output", "--quiet"});
  CHECK(Bash({"lockstep", "run", "job.yaml", "--w"}) == Words{"--workers"});
  CHECK(Bash({"lockstep", "token", ""}) == Words{"-h", "--help", "--role", "--dir"});  // it has nothing else
}

TEST_CASE("completion: bash is offered the values of an option, and files for others", "[cli]") {
  const Words files{"job a.yaml", "job.yaml"};
  CHECK(Bash({"lockstep", "token", "--role", ""}) == Words{"read", "join", "admin"});
  CHECK(Bash({"lockstep", "token", "--role", "=", "re"}) == Words{"read"});
  CHECK(Bash({"lockstep", "token", "--role", "="}) == Words{"read", "join", "admin"});
  CHECK(Bash({"lockstep", "completion", "z"}) == Words{"zsh"});
  CHECK(Bash({"lockstep", "run", "--workers", ""}) == Words{""});
  Words found = Bash({"lockstep", "run", "--workers", "2", "job"});
  std::sort(found.begin(), found.end());
  CHECK(found == files);
  CHECK(Bash({"lockstep", "run", "-o", "job."}) == Words{"job.yaml"});
}

TEST_CASE("completion: fish is offered the same, with files where they fit", "[cli]") {
  if (!IsInstalled("fish")) return;
  CHECK(Fish("lockstep co") == Words{"completion"});
  CHECK(Fish("lockstep checkpoint ") == Words{"ls", "verify"});
  CHECK(Fish("lockstep help checkpoint v") == Words{"verify"});
  CHECK(Fish("lockstep run --w") == Words{"--workers"});
  CHECK(Fish("lockstep run --hid") == Words{""});
  CHECK(Fish("lockstep token --role r") == Words{"read"});
  CHECK(Fish("lockstep completion z") == Words{"zsh"});
  CHECK(Fish("lockstep run --workers 2 job.") == Words{"job.yaml"});
  CHECK(Fish("lockstep run -o job.") == Words{"job.yaml"});
  CHECK(Fish("lockstep job.") == Words{""});
}

TEST_CASE("completion: zsh shows the same, with descriptions", "[cli]") {
  if (!IsInstalled("zsh")) return;
  CHECK_THAT(Zsh("lockstep "), Contains("Makes a token") && !Contains("Hidden"));
  CHECK_THAT(Zsh("lockstep checkpoint "), Contains("Reads them") && Contains("verify"));
  CHECK_THAT(Zsh("lockstep help checkpoint "), Contains("Reads them"));
  CHECK_THAT(Zsh("lockstep run --"), Contains("How many [at most 9]") && Contains("A setting: key=value") &&
                                         Contains("Says \"nothing\"; not even \\n") && !Contains("--hidden"));
  CHECK_THAT(Zsh("lockstep token --role "), Contains("admin") && Contains("join"));
  CHECK_THAT(Zsh("lockstep run "), Contains("job.yaml"));
  CHECK_THAT(Zsh("lockstep run --workers "), !Contains("job.yaml"));
}

}  // namespace
}  // namespace lockstep::cli
