// The name of this process in a job's records.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_CHIEF_SERVER_THIS_PROCESS_H_
#define LOCKSTEP_CHIEF_SERVER_THIS_PROCESS_H_

#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// Process id and host name; no term.
TermOwner ThisProcess();

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_THIS_PROCESS_H_
