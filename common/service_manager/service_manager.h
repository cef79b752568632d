// Tells the service manager that started this process (systemd, Type=notify) when it is ready, what it is at, and that
// its loop turns. Each message is a datagram of a few lines (sd_notify(3)) to the socket that NOTIFY_SOCKET names; it
// is never waited for. Without that variable nothing is sent.
//
// Threading: thread-safe; owns one thread where there is a service manager.
#ifndef LOCKSTEP_COMMON_SERVICE_MANAGER_SERVICE_MANAGER_H_
#define LOCKSTEP_COMMON_SERVICE_MANAGER_SERVICE_MANAGER_H_

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep {

class ServiceManager {
 public:
  // What this process is at. Both are asked on a thread of the manager, and may block for seconds.
  struct Subject {
    std::function<absl::Duration()> since_turn;  // how long ago the newest turn of the loop began
    std::function<std::string()> status;         // a line for people; "": not ready, or nothing new
  };
  // Has its manager ask `subject` from here to its end: ready with the first status, alive while the loop turns. Before
  // and after that the process lives as far as the manager knows: it begins, or it writes its last files. One at a
  // time.
  class Watch {
   public:
    Watch(ServiceManager* manager, Subject subject) : manager_(manager) { manager_->Ask(std::move(subject)); }
    ~Watch() { manager_->Ask(std::nullopt); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    ServiceManager* const manager_;
  };

  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of the environment.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // This process ends.
  void Stopping() const { Send("STOPPING=1\n"); }

 private:
  // Returns when no subject of before is asked any more.
  void Ask(std::optional<Subject> subject);
  void Run();
  // Asks `subject` and tells what it answers. Returns whether it is ready.
  bool Tell(const std::optional<Subject>& subject, bool ready) const;
  void Send(absl::string_view lines) const;

  std::string socket_;                                  // "": no manager
  absl::Duration watchdog_ = absl::InfiniteDuration();  // how long it waits for a sign of life
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mutex_) = false;
  bool asking_ GUARDED_BY(mutex_) = false;
  std::optional<Subject> subject_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SERVICE_MANAGER_SERVICE_MANAGER_H_
