// What a machine lacks for chiefs and workers, as the lines of `lockstep doctor`.
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
  int cores = 0;                       // that this process may run on
  double core_quota = 0;               // of its control group, in cores; 0: none
  int64_t memory_bytes = 0;            // that is free for new processes
  int64_t memory_limit_bytes = 0;      // of its control group; 0: none
  uint64_t open_files = 0;             // the hard limit of a process
  bool shows_stacks = false;           // there is /proc of this process, and memory that another one may read
  bool fast_encryption = false;        // the processor computes AES
  bool has_nvidia_card = false;        // whether or not there is a driver for it
  std::vector<std::string> addresses;  // other machines may reach it under these
};

// Of this machine. What cannot be read stays zero.
HostFacts ReadHostFacts();

// One line each; a warning says what will not work and how to mend it.
std::vector<Finding> DescribeHost(const HostFacts& facts);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_HOST_FACTS_H_
