// The address of a job in etcd: http://HOST:PORT[,HOST:PORT…]/PREFIX, or https://.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_ETCD_ETCD_URL_H_
#define LOCKSTEP_COMMON_ETCD_ETCD_URL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

struct EtcdUrl {
  bool tls = false;
  std::vector<std::string> endpoints;  // HOST:PORT, of one cluster
  std::string prefix;                  // of the job's keys; no '/' at either end

  friend bool operator==(const EtcdUrl&, const EtcdUrl&) = default;
};

// One '/' at the end is ignored. InvalidArgument: the message says which part is wrong and gives an example.
absl::StatusOr<EtcdUrl> ParseEtcdUrl(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_ETCD_ETCD_URL_H_
