#include "deploy/cli/documentation.h"

#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/version/version.h"
#include "deploy/cli/command_tree.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/completion.h"
#include "deploy/cli/manual.h"

namespace lockstep::cli {
namespace {

constexpr char kProgram[] = "lockstep";

struct ManualOptions {
  std::string directory;
  std::string date;
};

absl::Status WritePages(const CLI::App& app, const ManualOptions& options) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStorage> folder, LocalStorage::Create(options.directory));
  for (const ManualPage& page : ManualPages(DescribeCommands(app, kProgram), kVersion, options.date)) {
    LS_RETURN_IF_ERROR(ReplaceFile(*folder, page.name + ".new", page.name, page.text, Access::kShared));
  }
  return absl::OkStatus();
}

void AddManual(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("manual", "Write a manual page for every command, for man");
  auto options = std::make_shared<ManualOptions>();
  command->add_option("dir", options->directory, "The folder to write into, made where it is missing")->required();
  command->add_option("--date", options->date, "The date at the foot of each page, 2026-01-31 (default: none)");
  command->callback([&app, options, &exit_code] {
    const absl::Status status = WritePages(app, *options);
    if (!status.ok()) exit_code = Fail(status, StorageExitCode(status));
  });
}

}  // namespace

void AddDocumentation(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("completion", "Print a script that completes commands in a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "Which shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell] {
    const CommandText program = DescribeCommands(app, kProgram);
    std::cout << (*shell == "bash"  ? BashCompletion(program)
                  : *shell == "zsh" ? ZshCompletion(program)
                                    : FishCompletion(program));
  });
  AddManual(app, exit_code);
}

}  // namespace lockstep::cli
