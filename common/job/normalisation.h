// The conversion of inputs that the data section of a job asks for.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_NORMALISATION_H_
#define LOCKSTEP_COMMON_JOB_NORMALISATION_H_

#include "common/graph/metagraph.h"
#include "protos/job.pb.h"

namespace lockstep {

// The conversion of a resolved job; the identity when it has no `data.normalize`.
Normalisation MakeNormalisation(const job::Data& data);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_NORMALISATION_H_
