#include "common/service_manager/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/liveness/activity.h"
#include "common/liveness/stall_check.h"
#include "common/storage/descriptor.h"

namespace lockstep {
namespace {

constexpr absl::Duration kAsksEvery = absl::Seconds(1);
constexpr absl::Duration kAsksUntilReady = absl::Milliseconds(100);

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// How long the manager waits for a sign of life of this very process; infinite when it does not.
absl::Duration WatchdogOfThisProcess() {
  int64_t pid = 0, microseconds = 0;
  const std::string of = Variable("WATCHDOG_PID");
  if (!of.empty() && (!absl::SimpleAtoi(of, &pid) || pid != getpid())) return absl::InfiniteDuration();
  if (!absl::SimpleAtoi(Variable("WATCHDOG_USEC"), &microseconds) || microseconds <= 0) {
    return absl::InfiniteDuration();
  }
  return absl::Microseconds(microseconds);
}

std::string StatusLine(absl::string_view status) {
  return absl::StrCat("STATUS=", absl::StrReplaceAll(status, {{"\n", " "}}));
}

}  // namespace

ServiceManager::ServiceManager() : socket_(Variable("NOTIFY_SOCKET")), watchdog_(WatchdogOfThisProcess()) {
  if (!socket_.empty()) thread_ = std::thread([this] { Run(); });
}

ServiceManager::~ServiceManager() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void ServiceManager::Ask(std::optional<Subject> subject) {
  MutexLock lock(&mutex_);
  subject_ = std::move(subject);
  changed_.SignalAll();
  while (asking_) changed_.Wait(&mutex_);
}

void ServiceManager::Run() {
  NameThread("service manager");
  bool ready = false;
  for (;;) {
    std::optional<Subject> subject;
    {
      MutexLock lock(&mutex_);
      if (stop_) return;
      subject = subject_;
      asking_ = true;
    }
    ready = Tell(subject, ready);
    MutexLock lock(&mutex_);
    asking_ = false;
    changed_.SignalAll();
    const absl::Duration pause = std::min(ready ? kAsksEvery : kAsksUntilReady, watchdog_ / 4);
    if (!stop_) changed_.WaitWithTimeout(&mutex_, pause);
  }
}

bool ServiceManager::Tell(const std::optional<Subject>& subject, bool ready) const {
  std::string lines;
  if (subject.has_value()) {
    const std::string status = subject->status();
    if (!status.empty() && !ready) lines = "READY=1\n";
    if (!status.empty()) absl::StrAppend(&lines, StatusLine(status), "\n");
    ready = ready || !status.empty();
  }
  const bool turns = !subject.has_value() || subject->since_turn() < StallCheck::kLimit;
  if (turns && watchdog_ < absl::InfiniteDuration()) absl::StrAppend(&lines, "WATCHDOG=1\n");
  if (!lines.empty()) Send(lines);
  return ready;
}

void ServiceManager::Send(absl::string_view lines) const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // a name that is in no file system
  const Descriptor descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (descriptor.get() < 0) return;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  // A manager that does not read has it again in a second.
  sendto(descriptor.get(), lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address), bytes);
}

}  // namespace lockstep
