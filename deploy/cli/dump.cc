// `lockstep dump`: what the chief and the workers of this machine do now, thread by thread, with their stacks.

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/liveness/examine.h"
#include "common/liveness/proc.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {
namespace {

// One takes a fraction of a second; the machine may be busy.
constexpr absl::Duration kAnswerLimit = absl::Seconds(10);

struct DumpOptions {
  std::string directory;
  std::vector<int> pids;
};

// Whether the process writes its dumps to the logs of this job.
bool IsOf(int pid, const std::string& directory) {
  const auto view = liveness::PageView::Of(pid);
  if (!view.ok()) return false;
  std::error_code none;
  return std::filesystem::equivalent((*view)->page().folder.Get(), absl::StrCat(directory, "/", layout::kLogs), none);
}

int Dump(const DumpOptions& options) {
  std::vector<int> pids = options.pids;
  if (pids.empty()) {
    for (const int pid : liveness::FindProcesses()) {
      if (options.directory.empty() || IsOf(pid, options.directory)) pids.push_back(pid);
    }
  }
  if (pids.empty()) {
    return Fail(absl::NotFoundError(absl::StrCat(
                    "no chief or worker ",
                    options.directory.empty() ? "" : absl::StrCat("that logs to ", options.directory, " "),
                    "runs on this machine, as far as this user may see; name processes by their ids, or see who runs "
                    "the job")),
                kExitChiefUnreachable);
  }
  int exit_code = kExitDone;
  for (const int pid : pids) {
    const absl::StatusOr<Examination> found = ExamineProcess(pid, kAnswerLimit);
    if (!found.ok()) {
      exit_code = Fail(found.status(), kExitChiefUnreachable);
      continue;
    }
    // Nodes have the names that a model gave them.
    char before = 0;
    for (const char byte : found->text) {
      std::cout << EscapeControl(byte, before);
      before = byte;
    }
    if (!found->path.empty()) std::cout << "\nwritten to " << EscapeControls(found->path) << "\n";
    std::cout << "\n";
  }
  return exit_code;
}

}  // namespace

void AddDump(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("dump", "What the chief and the workers on this machine do now, with their stacks");
  auto options = std::make_shared<DumpOptions>();
  CLI::Option* directory = AddPlace(*command, "--dir", options->directory, "Only those of the job in this directory");
  command->add_option("pid", options->pids, "Only these processes")->excludes(directory);
  command->callback([options, &exit_code] { exit_code = Dump(*options); });
}

}  // namespace lockstep::cli
