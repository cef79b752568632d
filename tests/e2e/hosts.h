// Hosts on one switch, as network namespaces of this machine: each has an address of its own, processes are started on
// a host, and links are cut, unplugged and slowed down while they run. The test itself is attached to the switch and
// reaches every plugged host. Needs root or user namespaces, and iproute2; changes nothing outside of the test's
// namespaces.
//
// Threading: thread-compatible; the main thread makes the first one, before any other thread exists.
#ifndef LOCKSTEP_TESTS_E2E_HOSTS_H_
#define LOCKSTEP_TESTS_E2E_HOSTS_H_

#include <functional>
#include <string>
#include <vector>

#include "tests/e2e/local_job.h"

namespace lockstep::e2e {

class Hosts {
 public:
  // Whether this machine allows namespaces; if not, prints "SKIPPED: why" for `what`.
  static bool Allowed(const std::string& what);

  // REQUIRES: Allowed, and no other instance exists. Throws std::runtime_error if the kernel lacks bridges or device
  // pairs.
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // 10.77.0.1 for host 0, and so on, until Readdress.
  const std::string& Address(int host) const { return hosts_[static_cast<size_t>(host)].address; }
  // Starts `words` on the host; stdout and stderr are appended to `log`.
  Process Start(int host, const std::vector<std::string>& words, const std::string& log) const;

  // Drops everything to and from the host silently.
  void Isolate(int host) const;
  void Rejoin(int host) const;
  // Takes the host's link down, which the host notices.
  void Unplug(int host) const;
  void Plug(int host) const;
  // Drops what `from` sends to `to`; the other direction works.
  void DropTo(int from, int to) const;
  void DeliverTo(int from, int to) const;
  // Both directions.
  void CutPair(int a, int b) const;
  void MendPair(int a, int b) const;
  // Limits what the host sends and receives to `rate`, as "20mbit". Returns false if the kernel cannot.
  bool SlowDown(int host, const std::string& rate) const;
  // Opens the host's cable until CloseCable: frames get from one end to the other only if somebody forwards them
  // (on_path.h).
  struct CableEnds {
    std::string at_host;  // names of interfaces of the test's own network
    std::string at_switch;
  };
  CableEnds OpenCable(int host) const;
  void CloseCable(int host) const;
  // Replaces the host's address; connections from the old one are dead.
  void Readdress(int host, const std::string& address);
  // Makes unacknowledged connections of this host fail after about `retries` doublings of 200 ms, instead of after a
  // quarter of an hour.
  void GiveUpConnectionsAfter(int host, int retries) const;

 private:
  struct Host {
    int network = -1;  // descriptor of its namespace
    std::string address;
  };
  void Ip(const std::vector<std::string>& words) const;
  void IpOn(int host, const std::vector<std::string>& words) const;

  std::vector<Host> hosts_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_HOSTS_H_
