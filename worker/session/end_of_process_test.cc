#include "worker/session/end_of_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

namespace lockstep::worker {
namespace {

TEST_CASE("end of process: a thread that never ends does not keep the process", "[session]") {
  const pid_t child = fork();
  if (child == 0) {
    EndProcessWithin(absl::Milliseconds(10), 75);
    std::thread([] {
      for (;;) pause();
    }).join();
  }

  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);

  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
}

}  // namespace
}  // namespace lockstep::worker
