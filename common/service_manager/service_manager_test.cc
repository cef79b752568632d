#include "common/service_manager/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/storage/descriptor.h"

namespace lockstep {
namespace {

using Catch::Contains;

// The socket of a service manager that listens, and the environment of a process that it started.
class Manager {
 public:
  // `name`: a path, or "@name" for a socket that is in no file system.
  explicit Manager(const std::string& name) : descriptor_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    unlink(name.c_str());
    REQUIRE(bind(descriptor_.get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(variable);
  }

  // With a sign of life every `interval` at least, of the process `pid`.
  void Expect(absl::Duration interval, int pid = getpid()) {
    setenv("WATCHDOG_USEC", absl::StrCat(absl::ToInt64Microseconds(interval)).c_str(), 1);
    setenv("WATCHDOG_PID", absl::StrCat(pid).c_str(), 1);
  }

  // The next message. Blocks.
  std::string Next() {
    char buffer[4096];
    const ssize_t bytes = recv(descriptor_.get(), buffer, sizeof buffer, 0);
    REQUIRE(bytes > 0);
    return {buffer, static_cast<size_t>(bytes)};
  }
  // The next message that contains `text`; `earlier`: those before it.
  std::string NextWith(const std::string& text, std::string* earlier = nullptr) {
    for (;;) {
      const std::string message = Next();
      if (message.find(text) != std::string::npos) return message;
      if (earlier != nullptr) absl::StrAppend(earlier, message);
    }
  }

 private:
  const Descriptor descriptor_;
};

std::string SocketPath(const std::string& name) { return absl::StrCat("@lockstep-test-", getpid(), "-", name); }

TEST_CASE("service manager: a process is ready with its first status, and says it once") {
  Manager manager(SocketPath("ready"));
  std::atomic<int> asked{0};
  ServiceManager service;
  const ServiceManager::Watch watch(&service, {[] { return absl::ZeroDuration(); },
                                               [&] {
                                                 const int times = ++asked;
                                                 return times < 3 ? "" : absl::StrCat("status\n", times);
                                               }});
  std::string earlier;
  CHECK(manager.NextWith("READY=1", &earlier) == "READY=1\nSTATUS=status 3\n");
  CHECK(earlier.empty());
  CHECK(manager.Next() == "STATUS=status 4\n");
}

TEST_CASE("service manager: the watchdog is fed while the loop turns, and before and after there is one") {
  Manager manager(SocketPath("watchdog"));
  manager.Expect(absl::Milliseconds(40));
  std::atomic<bool> stands{false}, gone_on{false};
  ServiceManager service;
  CHECK(manager.Next() == "WATCHDOG=1\n");  // nothing to watch yet
  {
    const ServiceManager::Watch watch(&service,
                                      {[&] { return stands ? absl::Minutes(1) : absl::ZeroDuration(); },
                                       [&] {
                                         return std::string(gone_on ? "goes on" : stands ? "stands" : "turns");
                                       }});
    CHECK(manager.NextWith("READY") == "READY=1\nSTATUS=turns\nWATCHDOG=1\n");
    stands = true;
    CHECK(manager.NextWith("STATUS=stands") == "STATUS=stands\n");
    for (int i = 0; i < 3; ++i) CHECK(manager.Next() == "STATUS=stands\n");
    gone_on = true;
    stands = false;
    std::string earlier;
    manager.NextWith("WATCHDOG=1", &earlier);
    CHECK_THAT(earlier, !Contains("READY"));
  }
  while (manager.Next() != "WATCHDOG=1\n") continue;  // what was said before
  CHECK(manager.Next() == "WATCHDOG=1\n");
}

TEST_CASE("service manager: a watchdog that is another process's is not fed") {
  Manager manager(SocketPath("other"));
  manager.Expect(absl::Milliseconds(40), getppid());
  ServiceManager service;
  const ServiceManager::Watch watch(&service, {[] { return absl::ZeroDuration(); }, [] { return "well"; }});
  CHECK(manager.Next() == "READY=1\nSTATUS=well\n");
}

TEST_CASE("service manager: a socket in the file system, and the end") {
  Manager manager(absl::StrCat("/tmp/lockstep-manager-", getpid()));
  const ServiceManager service;
  service.Stopping();
  CHECK(manager.Next() == "STOPPING=1\n");
  unlink(std::getenv("NOTIFY_SOCKET"));
  service.Stopping();  // nobody there: nothing happens
}

TEST_CASE("service manager: without one nothing is asked and nothing is sent") {
  std::atomic<int> asked{0};
  {
    ServiceManager service;
    const ServiceManager::Watch watch(
        &service, {[&] { return ++asked, absl::ZeroDuration(); }, [&] { return ++asked, std::string("well"); }});
    service.Stopping();
  }
  CHECK(asked == 0);
}

}  // namespace
}  // namespace lockstep
