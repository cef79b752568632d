// The data of a job as its set-up sees it. The chief knows no file format: whoever starts one gives it a DataInspector.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_TRAINING_JOB_DATA_H_
#define LOCKSTEP_COMMON_TRAINING_JOB_DATA_H_

#include <functional>
#include <memory>

#include "common/graph/metagraph.h"
#include "common/job/findings.h"
#include "common/job/job.h"
#include "common/training/training_policy.h"

namespace lockstep {

class JobData {
 public:
  virtual ~JobData() = default;
  virtual const DataFacts& facts() const = 0;
  // Finds what the model that was built for this data cannot take, such as labels beyond its classes.
  virtual void CheckFits(const MetaGraph& metagraph, Findings& findings) const = 0;
};

// Opens the data of `spec` and finds what is wrong with it; null when an error was found. `imported` is the graph of
// `model.onnx`: what the model takes has to fit. It is null for a built-in model, and for one that could not be read:
// then the data is looked at alone.
using DataInspector =
    std::function<std::unique_ptr<JobData>(const JobSpec& spec, const Graph* imported, Findings& findings)>;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRAINING_JOB_DATA_H_
