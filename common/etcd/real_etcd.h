// A real etcd on the loopback for tests: the program `etcd` of Debian's etcd-server.
//
// Threading: owned by the test.
#ifndef LOCKSTEP_COMMON_ETCD_REAL_ETCD_H_
#define LOCKSTEP_COMMON_ETCD_REAL_ETCD_H_

#include <sys/types.h>

#include <string>

namespace lockstep {

class RealEtcd {
 public:
  // Starts one node with its data in `folder`, which is created, and waits until it serves. `certificates`: a folder
  // filled by MakeCertificates; clients then need a certificate. Throws std::runtime_error with the end of its log.
  explicit RealEtcd(std::string folder, std::string certificates = "");
  ~RealEtcd() { Kill(); }
  RealEtcd(const RealEtcd&) = delete;
  RealEtcd& operator=(const RealEtcd&) = delete;

  // The URL of a job in this etcd.
  std::string Url(const std::string& prefix) const;
  std::string endpoint() const;  // HOST:PORT
  // Kill sends SIGKILL; Start starts the node again with the same data, on the same port.
  void Kill();
  void Start();

 private:
  bool Serves() const;

  const std::string folder_;
  const std::string certificates_;
  int port_ = 0;
  int peer_port_ = 0;
  pid_t process_ = 0;
};

// Makes a certificate authority, a certificate for servers on the loopback, and one for clients with openssl: ca.crt,
// server.crt, server.key, client.crt, client.key in `folder`.
void MakeCertificates(const std::string& folder);
// Sets the environment variables of this process, and of processes that it starts, to the client's certificates.
void UseCertificates(const std::string& folder);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_ETCD_REAL_ETCD_H_
