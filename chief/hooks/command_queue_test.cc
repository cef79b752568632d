#include "chief/hooks/command_queue.h"

#include <sched.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

// What ended so far.
struct Record {
  Mutex mutex;
  std::vector<std::string> ended GUARDED_BY(mutex);
  CommandQueue::Ended Writer() {
    return [this](const HookCommand& command, const CommandEnd& end) {
      MutexLock lock(&mutex);
      ended.push_back(absl::StrCat(command.hook, " ", command.step, " ", end.how));
    };
  }
  std::vector<std::string> All() {
    MutexLock lock(&mutex);
    return ended;
  }
};

HookCommand Make(const std::string& hook, int64_t step, const std::string& script, bool at_end = false) {
  HookCommand command{hook, step, at_end, {}};
  command.command.words = {"/bin/sh", "-c", script};
  command.command.limit = absl::Minutes(10);
  return command;
}

void WaitUntilIdle(const CommandQueue& queue) {
  while (!queue.idle()) sched_yield();
}

TEST_CASE("command queue: a hook's commands run one after another, and hooks beside each other", "[hooks]") {
  Record record;
  CommandQueue queue(record.Writer());
  const std::string fifo = absl::StrCat(std::getenv("TEST_TMPDIR"), "/fifo");
  REQUIRE(system(absl::StrCat("rm -f ", fifo, "; mkfifo ", fifo).c_str()) == 0);

  // The first waits for what only the other hook's command gives.
  CHECK(queue.Start(Make("a", 1, absl::StrCat("cat ", fifo))));
  CHECK(queue.Start(Make("a", 2, "true")));
  CHECK(queue.Start(Make("b", 1, absl::StrCat("echo now > ", fifo))));
  WaitUntilIdle(queue);

  const std::vector<std::string> all = record.All();
  REQUIRE(all.size() == 3);
  CHECK(std::find(all.begin(), all.end(), "a 1 exit code 0") < std::find(all.begin(), all.end(), "a 2 exit code 0"));
}

TEST_CASE("command queue: who gives too many is told at once", "[hooks]") {
  Record record;
  CommandQueue queue(record.Writer());

  int taken = 0;
  while (queue.Start(Make("slow", taken, "sleep 1000"))) ++taken;

  CHECK(taken >= static_cast<int>(CommandQueue::kMostWaiting));
  CHECK(taken <= static_cast<int>(CommandQueue::kMostWaiting) + 1);
  CHECK(queue.Start(Make("other", 1, "true")));
  queue.Cancel();
  WaitUntilIdle(queue);
  for (const std::string& line : record.All()) CHECK_THAT(line, !Catch::Contains("slow 5"));
}

TEST_CASE("command queue: at the end what waits still runs", "[hooks]") {
  Record record;
  CommandQueue queue(record.Writer(), /*at_end=*/absl::Minutes(10));
  for (int step = 0; step < 3; ++step) CHECK(queue.Start(Make("steps", step, "true")));

  queue.Close();
  WaitUntilIdle(queue);

  CHECK(record.All().size() == 3);
}

TEST_CASE("command queue: when the moment at the end is over, commands of the end alone go on", "[hooks]") {
  Record record;
  CommandQueue queue(record.Writer(), /*at_end=*/absl::ZeroDuration());
  const std::string begun = absl::StrCat(std::getenv("TEST_TMPDIR"), "/begun");
  REQUIRE(system(absl::StrCat("rm -f ", begun, "; mkfifo ", begun).c_str()) == 0);
  CHECK(queue.Start(Make("steps", 1, absl::StrCat("echo > ", begun, "; sleep 1000"))));
  CHECK(queue.Start(Make("steps", 2, "true")));
  CHECK(queue.Start(Make("end", 2, "true", /*at_end=*/true)));
  REQUIRE(system(absl::StrCat("cat ", begun, " > /dev/null").c_str()) == 0);  // it runs

  queue.Close();
  CHECK_FALSE(queue.Start(Make("end", 3, "true", true)));
  WaitUntilIdle(queue);

  std::set<std::string> all;
  for (const std::string& line : record.All()) all.insert(line);
  CHECK(all.count("end 2 exit code 0") == 1);
  CHECK(all.count("steps 1 signal 15 (Terminated), because the job ends") == 1);
  CHECK(all.count("steps 2 exit code 0") == 0);
  CHECK(queue.dropped() == 1);
}

}  // namespace
}  // namespace lockstep::chief
