// The stacks of all threads of this process, taken by the threads themselves: each gets a signal, whose handler writes
// the stack to memory allocated before. A thread that the signal does not reach does not answer; the wait for it is
// limited.
//
// The handler calls backtrace(3), which was called once before, so that its library is loaded. With GCC 12 and
// glibc 2.35 or newer it takes no lock and allocates nothing.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_LIVENESS_STACKS_H_
#define LOCKSTEP_COMMON_LIVENESS_STACKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::liveness {

// Allocates the memory and installs the handler of StackSignal() in this process. Idempotent.
void InstallStackSignal();

struct ThreadStack {
  int tid = 0;
  bool answered = false;
  std::vector<uintptr_t> frames;  // the innermost first: the program counter, then return addresses
};

// Signals every thread of this process and waits for the answers for at most `limit`. Concurrent calls run one after
// another. A system call that the signal interrupts is resumed or fails with EINTR. REQUIRES: InstallStackSignal was
// called.
std::vector<ThreadStack> CollectStacks(absl::Duration limit);

// Finds the names of addresses of this process. Takes no lock of the dynamic loader, which a hanging thread may hold.
class Symbols {
 public:
  // Looks up names until `until` (SteadyNow); afterwards NameOf gives addresses only.
  explicit Symbols(absl::Time until);

  // "Function()+0x1f lockstep+0x12345": `addr2line -Cfie lockstep 0x12345` prints the line. `is_return`: `address` is a
  // return address, so the call before it is meant.
  std::string NameOf(uintptr_t address, bool is_return);

 private:
  struct Mapping {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uintptr_t base = 0;  // the address of the file's first byte
    std::string file;
  };

  const absl::Time until_;
  std::vector<Mapping> mappings_;
  std::map<uintptr_t, std::string> known_;
};

}  // namespace lockstep::liveness

#endif  // LOCKSTEP_COMMON_LIVENESS_STACKS_H_
