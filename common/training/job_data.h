// The data of a job as its set-up sees it. The chief knows no file formats: the program that starts it supplies a
// DataInspector.
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
  // Adds findings about data that the model built for it cannot take, such as labels beyond its classes.
  virtual void CheckFits(const MetaGraph& metagraph, Findings& findings) const = 0;
};

// Opens the data of `spec` and adds findings about it; null when there was an error. `imported` is the graph of
// `model.onnx`, whose inputs the data has to fit. It is null for a built-in model, and for a model that could not be
// read; the data is then checked on its own.
using DataInspector =
    std::function<std::unique_ptr<JobData>(const JobSpec& spec, const Graph* imported, Findings& findings)>;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRAINING_JOB_DATA_H_
