// Lets a language model of bytes write: draws one byte after another from the scores that the model gives the end of
// the text so far.
//
// Threading: thread-compatible; the plan's owner calls.
#ifndef LOCKSTEP_WORKER_SAMPLE_TEXT_WRITER_H_
#define LOCKSTEP_WORKER_SAMPLE_TEXT_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// The model's answer to one text, or to a pass of them where it computes with its batch. InvalidArgument when the model
// does not take tokens [batch, length] and score 256 bytes per position.
absl::StatusOr<Graph> MakeTextGraph(const MetaGraph& metagraph);

struct TextOptions {
  std::string prompt = "\n";  // not empty
  int64_t bytes = 400;
  double temperature = 0.8;  // 0: always the likeliest byte; 1: as the model says
  uint64_t seed = 0;         // the same seed and weights give the same text
};

// The prompt and what follows it. Each byte is also given to `on_byte` as it comes (may be empty). Blocks; errors of
// the plan, Cancelled among them. REQUIRES: `plan` is of MakeTextGraph's graph and bound.
absl::StatusOr<std::string> WriteText(Plan& plan, const TextOptions& options,
                                      const std::function<void(char)>& on_byte = {});

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SAMPLE_TEXT_WRITER_H_
