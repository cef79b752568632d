#include "chief/standby/beat_thread.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {
namespace {

TEST_CASE("beat thread: beats once it stands, whatever other threads wait for, and goes on after an error", "[chief]") {
  Mutex mutex;
  CondVar written;
  int beats = 0;
  const auto write = [&] {
    MutexLock lock(&mutex);
    ++beats;
    written.Signal();
    return beats == 1 ? absl::UnavailableError("the disk is away") : absl::OkStatus();
  };
  const BeatThread thread(
      write, [] { return size_t{3}; }, absl::Milliseconds(10));
  MutexLock lock(&mutex);
  while (beats < 2) written.WaitWithTimeout(&mutex, absl::Seconds(1));
}

TEST_CASE("beat thread: a thread that is asked to end while it rests ends", "[chief]") {
  std::atomic<int> asked = 0;
  {
    const BeatThread thread([] { return absl::OkStatus(); },
                            [&] {
                              ++asked;
                              return size_t{0};
                            },
                            absl::Hours(1));
  }
  CHECK(asked <= 1);
}

}  // namespace
}  // namespace lockstep::chief
