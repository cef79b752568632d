#include "common/liveness/stacks.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "common/clock/clock.h"
#include "common/liveness/proc.h"

// Functions that a stack must name: not inlined, and with something left to do behind the call that they hang in.
extern "C" {
[[gnu::noinline]] void HangsOnAMutex(std::mutex* mutex) {
  mutex->lock();
  mutex->unlock();
}
[[gnu::noinline]] void HangsInASleep(const std::atomic<bool>* stop) {
  while (!*stop) {
    const timespec hour{.tv_sec = 3600, .tv_nsec = 0};
    nanosleep(&hour, nullptr);
  }
}
[[gnu::noinline]] void SpinsForEver(const std::atomic<bool>* stop) {
  while (!*stop) {
  }
}
}

namespace lockstep::liveness {
namespace {

// A thread that runs `work`, and its id as the system counts threads.
class Hanging {
 public:
  template <typename Work>
  explicit Hanging(Work work)
      : thread_([this, work] {
          tid_ = gettid();
          work();
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Hanging() { thread_.join(); }
  int tid() const { return tid_; }
  void Signal(int signal) { pthread_kill(thread_.native_handle(), signal); }
  // Blocks until the system says so of the thread.
  void WaitForState(char state) const {
    while (StateOfThread(getpid(), tid_).state != state) std::this_thread::yield();
  }

 private:
  std::atomic<int> tid_{0};
  std::thread thread_;
};

// The stack of one thread, a name a line; "no answer" where there is none.
std::string StackOf(int tid) {
  Symbols symbols(absl::InfiniteFuture());
  for (const ThreadStack& stack : CollectStacks(absl::Seconds(30))) {
    if (stack.tid != tid) continue;
    std::string text = stack.answered ? "" : "no answer";
    for (size_t i = 0; i < stack.frames.size(); ++i) text += symbols.NameOf(stack.frames[i], i > 0) + "\n";
    return text;
  }
  return "no such thread";
}

TEST_CASE("stacks: a thread that waits for a lock is named with the function that does", "[liveness]") {
  const char* const sanitizer = std::getenv("LOCKSTEP_SANITIZER");
  if (sanitizer != nullptr && std::string(sanitizer) == "thread") {
    std::cout << "SKIPPED: ThreadSanitizer holds signals back while a thread waits for a lock\n";
    return;
  }
  InstallStackSignal();
  std::mutex mutex;
  mutex.lock();
  {
    Hanging hanging([&] { HangsOnAMutex(&mutex); });
    hanging.WaitForState('S');

    CHECK_THAT(StackOf(hanging.tid()), Catch::Contains("HangsOnAMutex"));
    mutex.unlock();
  }
}

TEST_CASE("stacks: a thread that sleeps is named, and sleeps on", "[liveness]") {
  InstallStackSignal();
  std::atomic<bool> stop{false};
  Hanging hanging([&] { HangsInASleep(&stop); });
  hanging.WaitForState('S');

  CHECK_THAT(StackOf(hanging.tid()), Catch::Contains("HangsInASleep"));
  CHECK_THAT(StackOf(hanging.tid()), Catch::Contains("HangsInASleep"));

  stop = true;
  hanging.WaitForState('S');
  hanging.Signal(SIGRTMIN + 6);
}

TEST_CASE("stacks: a thread that spins is named", "[liveness]") {
  InstallStackSignal();
  std::atomic<bool> stop{false};
  Hanging hanging([&] { SpinsForEver(&stop); });

  const std::string stack = StackOf(hanging.tid());
  stop = true;

  CHECK_THAT(stack, Catch::Contains("SpinsForEver"));
  CHECK_THAT(stack, Catch::Contains("stacks_test+0x"));
}

TEST_CASE("stacks: a thread that no signal reaches is not waited for", "[liveness]") {
  InstallStackSignal();
  std::atomic<bool> stop{false};
  Hanging hanging([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    SpinsForEver(&stop);
  });
  while (!BlocksSignal(getpid(), hanging.tid(), SIGRTMIN + 6)) std::this_thread::yield();

  // With a limit that is never over: it would not return.
  CHECK(StackOf(hanging.tid()) == "no answer");
  stop = true;
}

TEST_CASE("stacks: a thread that sleeps in the kernel is given up, and answers nobody later", "[liveness]") {
  if (std::getenv("LOCKSTEP_SANITIZER") != nullptr) return;  // they make another call of vfork
  InstallStackSignal();
  int release[2];
  REQUIRE(pipe(release) == 0);
  {
    // Whoever calls vfork sleeps so until the child ends.
    Hanging hanging([&] {
      const pid_t child = vfork();
      if (child == 0) {
        char byte = 0;
        while (read(release[0], &byte, 1) < 0) {
        }
        _exit(0);
      }
    });
    hanging.WaitForState('D');

    for (int i = 0; i < 2; ++i) {
      for (const ThreadStack& stack : CollectStacks(absl::Milliseconds(50))) {
        if (stack.tid == hanging.tid()) CHECK_FALSE(stack.answered);
        if (stack.tid == gettid()) CHECK(stack.answered);
      }
    }
    REQUIRE(write(release[1], "x", 1) == 1);
  }
  for (const ThreadStack& stack : CollectStacks(absl::Seconds(30))) CHECK(stack.answered);
}

TEST_CASE("stacks: without time for names there are addresses", "[liveness]") {
  InstallStackSignal();
  Symbols symbols(absl::InfinitePast());

  const std::string name = symbols.NameOf(reinterpret_cast<uintptr_t>(&HangsOnAMutex), /*is_return=*/false);

  CHECK_THAT(name, Catch::StartsWith("stacks_test+0x"));
  CHECK(symbols.NameOf(1, false) == "0x1");
}

}  // namespace
}  // namespace lockstep::liveness
