// `lockstep checkpoint ls|verify|digest|diff`: reads a job's directory; changes nothing and needs no chief. What
// changes something is in checkpoint_change.cc, what writes a file elsewhere in checkpoint_export.cc.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/checkpoint/checkpoint_diff.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/checkpoints_of_job.h"
#include "common/checkpoint_format/naming.h"
#include "common/job_place/job_place.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/progress_line.h"

namespace lockstep::cli {
namespace {

struct CheckpointOptions {
  std::string directory;
  std::optional<int64_t> step;
};

uint64_t TotalBytes(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const ManifestFile& file : manifest.files()) bytes += file.size();
  return bytes;
}

// Those of `all` that are meant: the one of `step`, or all, newest first. NotFound when there is none.
absl::StatusOr<std::vector<chief::CheckpointSummary>> Choose(std::vector<chief::CheckpointSummary> all,
                                                             const CheckpointOptions& options) {
  if (options.step.has_value()) {
    std::erase_if(all, [&](const auto& summary) { return layout::ParseStepName(summary.name) != options.step; });
  }
  if (!all.empty()) return all;
  return absl::NotFoundError(
      absl::StrCat("no checkpoint ", options.step.has_value() ? absl::StrCat("of step ", *options.step, " ") : "",
                   "in ", options.directory, "; give the job's directory, the one that holds LOCKSTEP"));
}

absl::StatusOr<std::vector<chief::CheckpointSummary>> ListAll(const JobPlace& place) {
  LS_ASSIGN_OR_RETURN(const chief::CheckpointPaths paths, chief::CheckpointsOfJob(place));
  return chief::ListCheckpoints(place.storage(), paths);
}

absl::StatusOr<std::vector<chief::CheckpointSummary>> Select(const JobPlace& place, const CheckpointOptions& options) {
  LS_ASSIGN_OR_RETURN(std::vector<chief::CheckpointSummary> all, ListAll(place));
  return Choose(std::move(all), options);
}

// The step that the newest manifest that reads knows as the best; 0 where none was evaluated.
int64_t BestStep(const std::vector<chief::CheckpointSummary>& all) {
  const auto reads = std::find_if(all.begin(), all.end(), [](const auto& summary) { return summary.status.ok(); });
  return reads == all.end() ? 0 : reads->manifest.evaluations().best_step();
}

// What its evaluation gave, if it had one, and whether it is the best of all.
std::string EvaluationText(const Manifest& manifest, int64_t best_step) {
  const Evaluations& evaluations = manifest.evaluations();
  if (evaluations.step() == 0 || evaluations.step() != manifest.step()) return "";
  return absl::StrFormat("  evaluated %.4f%s", evaluations.value(), manifest.step() == best_step ? " (best)" : "");
}

absl::Status List(const JobPlace& place, const CheckpointOptions& options) {
  LS_ASSIGN_OR_RETURN(std::vector<chief::CheckpointSummary> all, ListAll(place));
  const int64_t best_step = BestStep(all);
  // A log that cannot be read hides no checkpoint of a directory.
  const std::set<int64_t> pinned = chief::PinnedSteps(place).value_or(std::set<int64_t>());
  LS_ASSIGN_OR_RETURN(all, Choose(std::move(all), options));
  for (const chief::CheckpointSummary& summary : all) {
    if (!summary.status.ok()) {
      if (chief::WasRemoved(place, summary.path)) continue;
      std::cout << EscapeControls(absl::StrCat(summary.name, "  BAD  ", summary.status.message())) << "\n";
      continue;
    }
    std::cout << EscapeControls(absl::StrFormat(
                     "%s  %.1f MiB  %d tensors  term %d  lineage %s  digest %s%s%s", summary.name,
                     static_cast<double>(TotalBytes(summary.manifest)) / (1 << 20), summary.manifest.tensors_size(),
                     summary.manifest.term(), summary.manifest.lineage().substr(0, 12),
                     summary.manifest.state_digest().substr(0, 16), EvaluationText(summary.manifest, best_step),
                     pinned.contains(summary.manifest.step()) ? "  pinned" : ""))
              << "\n";
  }
  return absl::OkStatus();
}

absl::Status VerifyOne(const JobPlace& place, const chief::CheckpointSummary& summary) {
  LS_ASSIGN_OR_RETURN(const auto reader, chief::CheckpointReader::Open(place.storage(), summary.path));
  ProgressLine progress(summary.name, reader.TensorBytes());
  return reader.VerifyContent(/*stop=*/nullptr, [&progress](uint64_t bytes) { progress.Advance(bytes); });
}

absl::Status Verify(const JobPlace& place, const CheckpointOptions& options) {
  LS_ASSIGN_OR_RETURN(std::vector<chief::CheckpointSummary> all, Select(place, options));
  absl::Status first_bad;
  for (const chief::CheckpointSummary& summary : all) {
    absl::Status status = summary.status;
    if (status.ok()) status = VerifyOne(place, summary);
    if (!status.ok() && chief::WasRemoved(place, summary.path)) {
      std::cout << EscapeControls(absl::StrCat(summary.name, "  was removed meanwhile")) << "\n";
      continue;
    }
    const std::string verdict = status.ok() ? "  ok" : absl::StrCat("  BAD  ", status.message());
    std::cout << EscapeControls(absl::StrCat(summary.name, verdict)) << "\n";
    if (first_bad.ok()) first_bad = status;
  }
  if (first_bad.ok()) return first_bad;
  return absl::DataLossError("at least one checkpoint is damaged; a restore falls back to the newest that verifies");
}

absl::Status PrintDigest(const JobPlace& place, const CheckpointOptions& options) {
  LS_ASSIGN_OR_RETURN(std::vector<chief::CheckpointSummary> all, Select(place, options));
  LS_ASSIGN_OR_RETURN(chief::CheckpointReader reader, chief::CheckpointReader::Open(place.storage(), all.front().path));
  LS_ASSIGN_OR_RETURN(const StateDigests digests, reader.ComputeDigests());
  std::cout << digests.state << "\n";
  return absl::OkStatus();
}

// The checkpoint of that step, or the newest one that opens. `place` must outlive it.
absl::StatusOr<chief::CheckpointReader> OpenOne(const JobPlace& place, std::optional<int64_t> step) {
  LS_ASSIGN_OR_RETURN(const chief::CheckpointPaths paths, chief::CheckpointsOfJob(place));
  return chief::OpenCheckpoint(place.storage(), paths, step);
}

absl::Status Diff(const CheckpointOptions& first, const CheckpointOptions& second) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> one, JobPlace::Open(first.directory));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> other, JobPlace::Open(second.directory));
  LS_ASSIGN_OR_RETURN(const chief::CheckpointReader before, OpenOne(*one, first.step));
  LS_ASSIGN_OR_RETURN(const chief::CheckpointReader after, OpenOne(*other, second.step));
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> lines, chief::DiffCheckpoints(before, after));
  for (const std::string& line : lines) std::cout << EscapeControls(line) << "\n";
  const int all = std::max(before.manifest().tensors_size(), after.manifest().tensors_size());
  std::cout << "step " << before.manifest().step() << " and step " << after.manifest().step()
            << (lines.empty() ? absl::StrCat(" hold the same state, bit for bit: ", all, " tensors")
                              : absl::StrCat(": ", lines.size(), " of ", all, " tensors differ"))
            << "\n";
  return absl::OkStatus();
}

void AddDiff(CLI::App& parent, int& exit_code) {
  CLI::App* command = parent.add_subcommand("diff", "What the newest checkpoints of two jobs differ in");
  auto first = std::make_shared<CheckpointOptions>();
  auto second = std::make_shared<CheckpointOptions>();
  AddPlace(*command, "first", first->directory, "A job's directory, or s3://BUCKET/PREFIX")->required();
  AddPlace(*command, "second", second->directory, "Another one, or the same")->required();
  command->add_option("--step", first->step, "The first one's checkpoint of this step")->check(CLI::NonNegativeNumber);
  command->add_option("--other-step", second->step, "The second one's")->check(CLI::NonNegativeNumber);
  command->callback([first, second, &exit_code] {
    const absl::Status status = Diff(*first, *second);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, kExitStorage);
  });
}

using Action = absl::Status (*)(const JobPlace&, const CheckpointOptions&);

void Add(CLI::App& parent, const char* name, const char* what, Action action, int& exit_code) {
  CLI::App* command = parent.add_subcommand(name, what);
  auto options = std::make_shared<CheckpointOptions>();
  AddPlace(*command, "dir", options->directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  command->add_option("--step", options->step, "Only the checkpoint of this step")->check(CLI::NonNegativeNumber);
  command->callback([options, action, &exit_code] {
    const auto place = JobPlace::Open(options->directory);
    const absl::Status status = place.ok() ? action(**place, *options) : place.status();
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, kExitStorage);
  });
}

}  // namespace

void AddCheckpoint(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("checkpoint", "Look at the checkpoints of a job, keep or remove one");
  command->require_subcommand(1);
  Add(*command, "ls", "List them, newest first", List, exit_code);
  Add(*command, "verify", "Read every byte and compare every digest", Verify, exit_code);
  Add(*command, "digest", "Print one hash over the state of the newest one", PrintDigest, exit_code);
  AddDiff(*command, exit_code);
  AddCheckpointChanges(*command, exit_code);
  AddCheckpointExport(*command, exit_code);
  AddCheckpointAdopt(*command, exit_code);
}

}  // namespace lockstep::cli
