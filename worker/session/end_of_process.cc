#include "worker/session/end_of_process.h"

#include <unistd.h>

#include <thread>

#include "absl/time/clock.h"

namespace lockstep::worker {

void EndProcessWithin(absl::Duration limit, int code) {
  std::thread([limit, code] {
    absl::SleepFor(limit);
    _exit(code);
  }).detach();
}

}  // namespace lockstep::worker
