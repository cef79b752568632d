// Generates text with a byte-level language model: samples one byte at a time from the scores for the end of the text.
//
// Threading: called by the plan's owner thread.
#ifndef LOCKSTEP_WORKER_SAMPLE_TEXT_WRITER_H_
#define LOCKSTEP_WORKER_SAMPLE_TEXT_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// The prediction graph for one text, or for a batch of them if the model has a fixed batch size. InvalidArgument unless
// the model maps tokens [batch, length] to scores of 256 bytes per position.
absl::StatusOr<Graph> MakeTextGraph(const MetaGraph& metagraph);

struct TextOptions {
  std::string prompt = "\n";  // not empty
  int64_t bytes = 400;
  double temperature = 0.8;  // 0: always the likeliest byte; 1: the model's probabilities
  uint64_t seed = 0;         // the same seed and weights give the same text
};

// Returns the prompt and its continuation. Also calls `on_byte` (may be empty) with each byte. Blocks; errors of the
// plan, Cancelled among them. REQUIRES: `plan` is of MakeTextGraph's graph and bound.
absl::StatusOr<std::string> WriteText(Plan& plan, const TextOptions& options,
                                      const std::function<void(char)>& on_byte = {});

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SAMPLE_TEXT_WRITER_H_
