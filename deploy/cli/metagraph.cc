// `lockstep metagraph show` and `diff`: a stored metagraph as JSON, and what two of them differ in.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/metagraph_diff.h"
#include "common/graph/serialize.h"
#include "common/job_place/job_place.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {
namespace {

constexpr uint64_t kLargestMetagraph = uint64_t{2} << 30;

// The bytes of a metagraph. `place` is a file, or a job's directory or bucket with one metagraph or a fingerprint to
// choose by.
absl::StatusOr<std::string> Load(const std::string& place, const std::string& fingerprint) {
  std::string root = place;
  std::string path;
  if (absl::EndsWith(place, ".pb")) {
    root = std::string(ParentPath(place));
    if (root.empty()) root = absl::StartsWith(place, "/") ? "/" : ".";
    path = std::string(BaseName(place));
  }
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> job, JobPlace::Open(root));
  const Storage& storage = job->storage();
  if (path.empty()) {
    LS_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage.List(layout::kMetagraphs));
    std::erase_if(entries, [&](const DirectoryEntry& entry) { return !absl::StartsWith(entry.name, fingerprint); });
    if (entries.size() != 1) {
      return absl::NotFoundError(absl::StrCat(place, " has ", entries.size(), " metagraphs that fit; name one of ",
                                              storage.Describe(layout::kMetagraphs),
                                              ", or for `show` choose it with --fingerprint (its first digits do)"));
    }
    path = JoinPath(layout::kMetagraphs, entries.front().name);
  }
  return ReadWholeFile(storage, path, kLargestMetagraph);
}

absl::Status ShowMetagraph(const std::string& place, const std::string& fingerprint) {
  LS_ASSIGN_OR_RETURN(const std::string bytes, Load(place, fingerprint));
  LS_ASSIGN_OR_RETURN(MetaGraph metagraph, ParseMetaGraph(bytes));
  LS_ASSIGN_OR_RETURN(const std::string name, Fingerprint(metagraph));
  std::cout << "fingerprint " << name << "\n" << MetaGraphToJson(metagraph) << "\n";
  return absl::OkStatus();
}

absl::Status DiffFiles(const std::string& first, const std::string& second) {
  LS_ASSIGN_OR_RETURN(const std::string before, Load(first, ""));
  LS_ASSIGN_OR_RETURN(const std::string after, Load(second, ""));
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> lines, DiffMetaGraphs(before, after));
  for (const std::string& line : lines) std::cout << line << "\n";
  if (lines.empty()) std::cout << "the metagraphs are the same\n";
  return absl::OkStatus();
}

}  // namespace

void AddMetagraph(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("metagraph", "Look at the training graph of a job");
  command->require_subcommand(1);
  CLI::App* show = command->add_subcommand("show", "Print a metagraph as JSON");
  auto place = std::make_shared<std::string>();
  auto fingerprint = std::make_shared<std::string>();
  AddPlace(*show, "place", *place, "The job's directory, or a .pb file")->required();
  show->add_option("--fingerprint", *fingerprint, "Which one, by its first digits");
  show->callback([place, fingerprint, &exit_code] {
    const absl::Status status = ShowMetagraph(*place, *fingerprint);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, kExitBadData);
  });

  CLI::App* diff = command->add_subcommand("diff", "What two metagraphs differ in, a line each");
  auto first = std::make_shared<std::string>();
  auto second = std::make_shared<std::string>();
  AddPlace(*diff, "first", *first, "A job's directory, or a .pb file of its metagraphs/")->required();
  AddPlace(*diff, "second", *second, "Another one")->required();
  diff->callback([first, second, &exit_code] {
    const absl::Status status = DiffFiles(*first, *second);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, kExitBadData);
  });
}

}  // namespace lockstep::cli
