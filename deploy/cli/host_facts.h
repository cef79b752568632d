// The facts of a machine that matter to chiefs and workers, as the lines of `lockstep doctor`.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_DEPLOY_CLI_HOST_FACTS_H_
#define LOCKSTEP_DEPLOY_CLI_HOST_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/job/findings.h"

namespace lockstep::cli {

struct HostFacts {
  int cores = 0;                       // cores that this process may run on
  double core_quota = 0;               // of its control group, in cores; 0: none
  int64_t memory_bytes = 0;            // free for new processes
  int64_t memory_limit_bytes = 0;      // of its control group; 0: none
  uint64_t open_files = 0;             // the hard limit of a process
  bool shows_stacks = false;           // /proc of this process exists, and memfd_create works
  bool fast_encryption = false;        // the processor has AES instructions
  bool has_nvidia_card = false;        // even without a driver
  std::vector<std::string> addresses;  // addresses under which other machines may reach it
};

// The facts of this machine. What cannot be read stays zero.
HostFacts ReadHostFacts();

// One line per topic; a warning says what will not work and how to fix it.
std::vector<Finding> DescribeHost(const HostFacts& facts);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_HOST_FACTS_H_
