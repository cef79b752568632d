// Tells the service manager that started this process (systemd, Type=notify) when it is ready, what its status is, and
// that its loop runs. Each message is a datagram of a few lines (sd_notify(3)) to the socket that NOTIFY_SOCKET names;
// sending never blocks. Without that variable nothing is sent.
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
  // The part of the process that is reported. Both functions are called on a thread of the ServiceManager, and may
  // block for seconds.
  struct Subject {
    std::function<absl::Duration()> since_turn;  // how long ago the newest turn of the loop began
    std::function<std::string()> status;         // a line for people; "": not ready, or nothing new
  };
  // Reports `subject` for the lifetime of the Watch: ready with the first status, alive while the loop turns. Before
  // and after it the process is always reported as alive, since it is starting or writing its last files. At most one
  // Watch exists at a time.
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

  // Reports that this process is stopping.
  void Stopping() const { Send("STOPPING=1\n"); }

 private:
  // Replaces the subject. Returns when the previous one is no longer being called.
  void Ask(std::optional<Subject> subject);
  void Run();
  // Calls `subject` and sends the result. Returns whether it is ready.
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
