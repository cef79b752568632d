// The limit on files and sockets that a process may have open. The usual soft limit, 1,024, is too low for a chief with
// more than 500 workers, and for a worker with as many peers; the hard one is far higher almost everywhere.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_DESCRIPTORS_H_
#define LOCKSTEP_COMMON_NET_DESCRIPTORS_H_

#include <cstdint>

namespace lockstep {

// Raises the soft limit of this process to the hard one. Returns the new soft limit. Child processes inherit it.
uint64_t RaiseDescriptorLimit();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_DESCRIPTORS_H_
