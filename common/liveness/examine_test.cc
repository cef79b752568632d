// A process that is looked at from another one. This program makes no page of its own, so that its children have
// theirs.
#include "common/liveness/examine.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/liveness/dump.h"
#include "common/liveness/proc.h"

extern "C" [[gnu::noinline]] void WaitsForASignal() {
  for (;;) pause();
}

namespace lockstep {
namespace {

using Catch::Contains;

std::string Folder() { return absl::StrCat(std::getenv("TEST_TMPDIR"), "/logs.", getpid()); }

// A child that runs `work`, which ends in WaitsForASignal, once it has called StartLiveness.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    pid_ = fork();
    if (pid_ == 0) {
      work();
      _exit(0);
    }
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  void WaitForState(char state) const {
    while (liveness::StateOfThread(pid_, pid_).state != state) std::this_thread::yield();
  }
  // Blocks until its main thread does something.
  void WaitForActivity() const {
    for (;; std::this_thread::yield()) {
      const auto view = liveness::PageView::Of(pid_);
      if (!view.ok() || (*view)->page().role.Get().empty()) continue;
      for (const auto& activity : liveness::ReadActivities((*view)->page(), liveness::MonotonicNs())) {
        if (activity.tid == pid_ && activity.doing.size() == 2) return;
      }
    }
  }

 private:
  pid_t pid_ = -1;
};

std::function<void()> Hanging(const std::string& folder) {
  return [folder] {
    StartLiveness("worker-9", folder);
    NameThread("engine");
    const NowDoing step("step ", 7);
    const NowDoing node("node 'fc1'");
    WaitsForASignal();
  };
}

TEST_CASE("examine: a process writes what its threads do, with their stacks, and goes on", "[liveness]") {
  const std::string folder = Folder();
  const Child child(Hanging(folder));
  child.WaitForActivity();

  const absl::StatusOr<Examination> found = ExamineProcess(child.pid(), absl::Seconds(60));
  REQUIRE(found.ok());

  CAPTURE(found->text);
  CHECK(found->role == "worker-9");
  CHECK(found->path == absl::StrCat(folder, "/dump-worker-9-", child.pid(), "-1.txt"));
  CHECK_THAT(found->doing, Contains("engine: node 'fc1' for ") && Contains(", in step 7 for "));
  CHECK_THAT(found->text, Contains("WaitsForASignal") && Contains("it was asked to") && Contains("examine_test+0x"));
  const absl::StatusOr<Examination> again = ExamineProcess(child.pid(), absl::Seconds(60));
  REQUIRE(again.ok());
  CHECK_THAT(again->path, Contains("-2.txt"));
}

TEST_CASE("examine: of a process that is stopped it is said from outside what it was doing", "[liveness]") {
  const Child child(Hanging(Folder()));
  child.WaitForActivity();
  kill(child.pid(), SIGSTOP);
  child.WaitForState('T');

  const absl::StatusOr<Examination> found = ExamineProcess(child.pid(), absl::Hours(1));
  REQUIRE(found.ok());

  CHECK(found->path.empty());
  CHECK_THAT(found->doing, Contains("node 'fc1' for "));
  CHECK_THAT(found->text, Contains("from outside, for it is stopped") && Contains("engine: is stopped") &&
                              Contains("no stack: the process cannot be asked"));
  CHECK(SilenceOf(child.pid()).ok());
}

TEST_CASE("examine: a dump goes elsewhere when its folder cannot be made, and old ones are removed", "[liveness]") {
  const std::string folder = Folder() + ".many";
  const Child child(Hanging(folder));
  child.WaitForActivity();
  for (int i = 0; i < 22; ++i) REQUIRE(ExamineProcess(child.pid(), absl::Seconds(60)).ok());
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) kept += entry.is_regular_file() ? 1 : 0;
  CHECK(kept == 20);

  const Child homeless(Hanging("/proc/no/such/folder"));
  homeless.WaitForActivity();
  const absl::StatusOr<Examination> found = ExamineProcess(homeless.pid(), absl::Seconds(60));
  REQUIRE(found.ok());
  CHECK_THAT(found->path, Contains(absl::StrCat("/dump-worker-9-", homeless.pid(), "-1.txt")));
  CHECK_FALSE(found->path.starts_with("/proc/"));
  std::filesystem::remove(found->path);
}

TEST_CASE("examine: processes that show nothing are refused, those that do are found", "[liveness]") {
  CHECK(absl::IsNotFound(ExamineProcess(getpid(), absl::Seconds(1)).status()));
  CHECK(absl::IsNotFound(ExamineProcess(-1, absl::Seconds(1)).status()));
  CHECK_FALSE(SilenceOf(getpid()).ok());

  const Child child(Hanging(Folder()));
  child.WaitForActivity();
  const std::vector<int> all = liveness::FindProcesses();

  CHECK(std::count(all.begin(), all.end(), child.pid()) == 1);
  CHECK(std::count(all.begin(), all.end(), getpid()) == 0);
}

}  // namespace
}  // namespace lockstep
