// The stacks of all threads of this process, taken by the threads themselves: each gets a signal, and its handler walks
// the stack into memory that was set aside before. A thread that no signal reaches does not answer, and nobody waits
// for it for long.
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

// Sets memory aside and takes StackSignal() for this process. Idempotent.
void InstallStackSignal();

struct ThreadStack {
  int tid = 0;
  bool answered = false;
  std::vector<uintptr_t> frames;  // the innermost first: where it was, then return addresses
};

// Signals every thread of this process and waits for the answers, at most `limit`. One call at a time. A system call
// that the signal interrupts goes on or says EINTR. REQUIRES: InstallStackSignal was called.
std::vector<ThreadStack> CollectStacks(absl::Duration limit);

// Names of addresses of this process. Takes no lock of the loader, which a thread that hangs may hold.
class Symbols {
 public:
  // Looks for names until `until` (SteadyNow); later ones are addresses only.
  explicit Symbols(absl::Time until);

  // "Function()+0x1f lockstep+0x12345": addr2line -Cfie lockstep 0x12345 tells the line. `is_return`: of a call before.
  std::string NameOf(uintptr_t address, bool is_return);

 private:
  struct Mapping {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uintptr_t base = 0;  // where the first byte of its file lies
    std::string file;
  };

  const absl::Time until_;
  std::vector<Mapping> mappings_;
  std::map<uintptr_t, std::string> known_;
};

}  // namespace lockstep::liveness

#endif  // LOCKSTEP_COMMON_LIVENESS_STACKS_H_
