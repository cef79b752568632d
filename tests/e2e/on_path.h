// Somebody on the cable of a host (hosts.h): every frame to and from it passes through here, and the bytes of some are
// changed. Nothing notices by itself: the checksums are made behind it, as by somebody who makes them anew.
//
// Threading: owned by the test; has a thread that forwards. All methods may be called at any time.
#ifndef LOCKSTEP_TESTS_E2E_ON_PATH_H_
#define LOCKSTEP_TESTS_E2E_ON_PATH_H_

#include <atomic>
#include <string>
#include <thread>

#include "tests/e2e/hosts.h"

namespace lockstep::e2e {

class OnPath {
 public:
  // On the cable of `host`; frames from or to the address `spared` stay as they are. Throws std::runtime_error where
  // the kernel does not allow it. The link is as before when this is gone.
  OnPath(const Hosts& hosts, int host, const std::string& spared);
  ~OnPath();
  OnPath(const OnPath&) = delete;
  OnPath& operator=(const OnPath&) = delete;

  // One bit of the next TCP segment with a payload, in the middle of it.
  void ChangeOne() { wanted_ = true; }
  void LeaveAlone() { wanted_ = false; }
  int changed() const { return changed_; }

 private:
  void Forward();
  void Change(std::string& frame);

  const Hosts& hosts_;
  const int host_;
  const std::string spared_;  // the address as four bytes
  int outside_ = -1;          // sockets at both ends of what was the cable
  int inside_ = -1;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> changed_{0};
  std::thread thread_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_ON_PATH_H_
