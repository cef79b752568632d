// The set-up of a job, both for a chief that starts it and for commands that only inspect it: job -> model -> facts of
// its data -> policy -> metagraph -> fingerprint -> layout. An error at one stage does not hide errors at later stages
// that do not depend on it.
//
// Threading: thread-safe (reads files, changes nothing); blocks.
#ifndef LOCKSTEP_COMMON_TRAINING_PREPARE_JOB_H_
#define LOCKSTEP_COMMON_TRAINING_PREPARE_JOB_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/graph/metagraph.h"
#include "common/graph/onnx/import.h"
#include "common/graph/state_layout.h"
#include "common/graph/training_account.h"
#include "common/job/findings.h"
#include "common/job/job.h"
#include "common/tensor/tensor.h"
#include "common/training/job_data.h"
#include "common/training/training_policy.h"

namespace lockstep {

struct PreparedJob {
  JobSpec job;  // with the hashes of its data
  DataFacts facts;
  TrainingPolicy training;
  MetaGraph metagraph;
  std::string metagraph_bytes;
  std::string fingerprint;
  StateLayout layout;
  std::map<std::string, Tensor> initial;  // of an imported model, by variable
  std::vector<AccountLine> account;       // what training will do to the model
};

// Sets up the job of `reading` and adds what it finds to `findings`. `inspect` opens the data, `evaluate` executes one
// node, to fold the constants of an imported model. nullopt when an error was found.
std::optional<PreparedJob> PrepareJob(const JobReading& reading, const DataInspector& inspect,
                                      const NodeEvaluator& evaluate, Findings& findings);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRAINING_PREPARE_JOB_H_
