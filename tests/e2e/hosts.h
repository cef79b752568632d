// Hosts on one switch, as network namespaces of this machine: each has an address of its own, processes start on a
// host, and links are cut, pulled and slowed down while they run. The test itself sits at the switch and reaches every
// host whose cable is in. Needs root or user namespaces, and iproute2; nothing outside of the test's namespaces is
// touched.
//
// Threading: owned by the test; its main thread makes the first one, before any other thread exists.
#ifndef LOCKSTEP_TESTS_E2E_HOSTS_H_
#define LOCKSTEP_TESTS_E2E_HOSTS_H_

#include <functional>
#include <string>
#include <vector>

#include "tests/e2e/local_job.h"

namespace lockstep::e2e {

class Hosts {
 public:
  // False, having said "SKIPPED: why" for `what`, where this machine allows no namespaces.
  static bool Allowed(const std::string& what);

  // REQUIRES: Allowed. One at a time. Throws std::runtime_error where the kernel lacks bridges or pairs of devices.
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // 10.77.0.1 for host 0, and so on, until Readdress.
  const std::string& Address(int host) const { return hosts_[static_cast<size_t>(host)].address; }
  // Starts `words` on the host; stdout and stderr are appended to `log`.
  Process Start(int host, const std::vector<std::string>& words, const std::string& log) const;

  // Everything to and from the host is lost, and no side is told.
  void Isolate(int host) const;
  void Rejoin(int host) const;
  // The host's link is down: it sees that.
  void Unplug(int host) const;
  void Plug(int host) const;
  // What `from` sends to `to` is lost; what `to` sends arrives.
  void DropTo(int from, int to) const;
  void DeliverTo(int from, int to) const;
  // Both ways.
  void CutPair(int a, int b) const;
  void MendPair(int a, int b) const;
  // The host sends and receives at most so much, as "20mbit". False where the kernel cannot.
  bool SlowDown(int host, const std::string& rate) const;
  // The host's cable is open until CloseCable: what comes at one end gets to the other only where somebody sends it on
  // (on_path.h).
  struct CableEnds {
    std::string at_host;  // names of interfaces of the test's own network
    std::string at_switch;
  };
  CableEnds OpenCable(int host) const;
  void CloseCable(int host) const;
  // The old address is gone; connections from it are dead.
  void Readdress(int host, const std::string& address);
  // A connection on which nothing is acknowledged fails after about `retries` doublings of 200 ms on this host, not
  // after a quarter of an hour.
  void GiveUpConnectionsAfter(int host, int retries) const;

 private:
  struct Host {
    int network = -1;  // its namespace
    std::string address;
  };
  void Ip(const std::vector<std::string>& words) const;
  void IpOn(int host, const std::vector<std::string>& words) const;

  std::vector<Host> hosts_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_HOSTS_H_
