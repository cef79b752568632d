#include "worker/step/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace lockstep::worker {

int64_t ProcessBytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE) + kFirstStepsBytes;
}

}  // namespace lockstep::worker
