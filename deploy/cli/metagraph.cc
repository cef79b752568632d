// `lockstep metagraph show`: a stored metagraph as JSON.
#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/serialize.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "deploy/cli/commands.h"

namespace lockstep::cli {
namespace {

constexpr uint64_t kLargestMetagraph = uint64_t{2} << 30;

// `place` is a file, or a job's directory with one metagraph or a fingerprint to choose by.
absl::Status Show(const std::string& place, const std::string& fingerprint) {
  std::string root = place;
  std::string path;
  if (absl::EndsWith(place, ".pb")) {
    root = std::string(ParentPath(place));
    if (root.empty()) root = absl::StartsWith(place, "/") ? "/" : ".";
    path = std::string(BaseName(place));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<LocalStorage> storage, LocalStorage::Open(root));
  if (path.empty()) {
    LS_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage->List(layout::kMetagraphs));
    std::erase_if(entries, [&](const DirectoryEntry& entry) { return !absl::StartsWith(entry.name, fingerprint); });
    if (entries.size() != 1) {
      return absl::NotFoundError(absl::StrCat(
          place, " has ", entries.size(), " metagraphs that fit; name one with --fingerprint (its first digits do)"));
    }
    path = JoinPath(layout::kMetagraphs, entries.front().name);
  }
  LS_ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(*storage, path, kLargestMetagraph));
  LS_ASSIGN_OR_RETURN(MetaGraph metagraph, ParseMetaGraph(bytes));
  LS_ASSIGN_OR_RETURN(const std::string name, Fingerprint(metagraph));
  std::cout << "fingerprint " << name << "\n" << MetaGraphToJson(metagraph) << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddMetagraph(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("metagraph", "Look at the training graph of a job");
  command->require_subcommand(1);
  CLI::App* show = command->add_subcommand("show", "Print a metagraph as JSON");
  auto place = std::make_shared<std::string>();
  auto fingerprint = std::make_shared<std::string>();
  show->add_option("place", *place, "The job's directory, or a .pb file")->required();
  show->add_option("--fingerprint", *fingerprint, "Which one, by its first digits");
  show->callback([place, fingerprint, &exit_code] {
    const absl::Status status = Show(*place, *fingerprint);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, kExitBadData);
  });
}

}  // namespace lockstep::cli
