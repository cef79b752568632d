// Which checkpoint of a job a command is about.
//
// Threading: OpenChosen blocks on the storage.
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
  std::optional<int64_t> step;  // none: the newest that is whole
  bool best = false;            // the one that `checkpoint.keep_best` keeps
};

// "dir", --step and --best, read into `choice`, which outlives the parsing.
void AddCheckpointChoice(CLI::App& command, CheckpointChoice& choice);

// The checkpoint that is meant; its tensors are not read yet. `place`, of `choice.directory`, outlives it. NotFound,
// with what to do, when there is none; else as chief::OpenCheckpoint.
absl::StatusOr<chief::CheckpointReader> OpenChosen(const JobPlace& place, const CheckpointChoice& choice);

// For --ema, where `checkpoint` holds no average of its weights.
absl::Status NoAverage(const chief::CheckpointReader& checkpoint);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECKPOINT_CHOICE_H_
