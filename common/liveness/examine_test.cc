// A process that is looked at from another one. This program makes no page of its own, so that its children have
// theirs.
#include "common/liveness/examine.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
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

TEST_CASE("examine: a process that ends instead of answering is not waited for", "[liveness]") {
  const Child child([] {
    liveness::OwnPage().beat_ns = liveness::MonotonicNs();
    NameThread("engine");
    const NowDoing step("step ", 7);
    const NowDoing node("node 'fc1'");
    liveness::OwnPage().role.Set("worker-9");  // and SIGQUIT ends it
    WaitsForASignal();
  });
  child.WaitForActivity();

  const absl::StatusOr<Examination> found = ExamineProcess(child.pid(), absl::Hours(1));

  REQUIRE(found.ok());
  CHECK(found->path.empty());
  CHECK_THAT(found->text, Contains("engine: ") && Contains("node 'fc1' for "));
}

TEST_CASE("examine: what a process calls its dump is read only where it is a file of that user", "[liveness]") {
  const std::string fifo = Folder() + ".fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const Child child([&] {
    sigset_t asked;
    sigemptyset(&asked);
    sigaddset(&asked, SIGQUIT);
    sigprocmask(SIG_BLOCK, &asked, nullptr);
    liveness::Page& page = liveness::OwnPage();
    page.beat_ns = liveness::MonotonicNs();
    NameThread("engine");
    const NowDoing step("step ", 7);
    const NowDoing node("node 'fc1'");
    page.role.Set("worker-9");
    int signal = 0;
    sigwait(&asked, &signal);
    page.last_dump.Set(fifo);
    ++page.dumps;
    WaitsForASignal();
  });
  child.WaitForActivity();

  const absl::StatusOr<Examination> found = ExamineProcess(child.pid(), absl::Hours(1));

  REQUIRE(found.ok());
  CHECK(found->path.empty());
  CHECK_THAT(found->text, Contains("from outside"));
}

// The exit code of a child that ran `work` to its end.
int ExitCodeOf(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("examine: a dump that does not fit on the disk leaves nothing behind", "[liveness]") {
  const std::string folder = Folder() + ".full";
  std::filesystem::create_directories(folder + "/logs");
  std::filesystem::create_directories(folder + "/tmp");
  const int code = ExitCodeOf([&] {
    setenv("TMPDIR", (folder + "/tmp").c_str(), 1);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit most{100, 100};
    setrlimit(RLIMIT_FSIZE, &most);
    StartLiveness("worker-9", folder + "/logs");
    return WriteDump("a test asks").ok() ? 1 : 2;
  });

  CHECK(code == 2);
  CHECK(std::filesystem::is_empty(folder + "/logs"));
  CHECK(std::filesystem::is_empty(folder + "/tmp"));
}

TEST_CASE("examine: dumps of a role are removed for that role alone, and any name makes a file's", "[liveness]") {
  const std::string folder = Folder() + ".roles";
  const auto write = [&](const std::string& role, int dumps) {
    return ExitCodeOf([&] {
      StartLiveness(role, folder);
      for (int i = 0; i < dumps; ++i) {
        if (!WriteDump("a test asks").ok()) return 1;
      }
      return 0;
    });
  };
  REQUIRE(write("w-1-b", 3) == 0);
  REQUIRE(write("w", 21) == 0);
  REQUIRE(write("w-1", 21) == 0);
  REQUIRE(write("rack/7", 1) == 0);

  std::map<std::string, int> kept;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const size_t process = name.rfind('-', name.rfind('-') - 1);
    ++kept[name.substr(0, process)];
  }
  CHECK(kept == std::map<std::string, int>{{"dump-rack_7", 1}, {"dump-w", 20}, {"dump-w-1", 20}, {"dump-w-1-b", 3}});
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
