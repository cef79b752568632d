#include "worker/step/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace lockstep::worker {
namespace {

constexpr int kLargeBlock = 256 << 10;  // below a chunk of a share

}  // namespace

int64_t ProcessBytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE) + kSteppingBytes;
}

void ReturnLargeBlocks() { mallopt(M_MMAP_THRESHOLD, kLargeBlock); }

}  // namespace lockstep::worker
