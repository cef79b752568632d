// An attacker on the cable of a host (hosts.h): every frame to and from it passes through here, and bytes of some are
// changed. The checksums are computed behind it, as by an attacker that fixes them, so that they do not reveal the
// change.
//
// Threading: thread-safe; owns a thread that forwards.
#ifndef LOCKSTEP_TESTS_E2E_ON_PATH_H_
#define LOCKSTEP_TESTS_E2E_ON_PATH_H_

#include <atomic>
#include <string>
#include <thread>

#include "tests/e2e/hosts.h"

namespace lockstep::e2e {

class OnPath {
 public:
  // Inserts itself into the cable of `host`; frames from or to the address `spared` are not changed. Throws
  // std::runtime_error if the kernel does not allow it. The destructor restores the link.
  OnPath(const Hosts& hosts, int host, const std::string& spared);
  ~OnPath();
  OnPath(const OnPath&) = delete;
  OnPath& operator=(const OnPath&) = delete;

  // Flips one bit in the middle of the next TCP segment with a payload.
  void ChangeOne() { wanted_ = true; }
  void LeaveAlone() { wanted_ = false; }
  int changed() const { return changed_; }

 private:
  void Forward();
  void Change(std::string& frame);

  const Hosts& hosts_;
  const int host_;
  const std::string spared_;  // the address as four bytes
  int outside_ = -1;          // sockets at both ends of the cut cable
  int inside_ = -1;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> changed_{0};
  std::thread thread_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_ON_PATH_H_
