// The options by which a command selects a checkpoint of a job.
//
// Threading: thread-compatible; OpenChosen blocks on the storage.
#ifndef LOCKSTEP_DEPLOY_CLI_CHECKPOINT_CHOICE_H_
#define LOCKSTEP_DEPLOY_CLI_CHECKPOINT_CHOICE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "common/job_place/job_place.h"

namespace lockstep::cli {

struct CheckpointChoice {
  std::string directory;
  std::optional<int64_t> step;  // nullopt: the newest that opens
  bool best = false;            // the one that `checkpoint.keep_best` keeps
};

// Adds "dir", --step and --best, which are parsed into `choice`; it must outlive the parsing.
void AddCheckpointChoice(CLI::App& command, CheckpointChoice& choice);

// Opens the selected checkpoint without reading its tensors. `place`, of `choice.directory`, outlives it. NotFound,
// with what to do: there is none. Else as chief::OpenCheckpoint.
absl::StatusOr<chief::CheckpointReader> OpenChosen(const JobPlace& place, const CheckpointChoice& choice);

// The error for --ema if `checkpoint` has no average of its weights.
absl::Status NoAverage(const chief::CheckpointReader& checkpoint);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECKPOINT_CHOICE_H_
