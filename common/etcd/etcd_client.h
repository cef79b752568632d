// Reads and writes a job's keys in etcd. A key may be bound to a lease and then ends with it.
//
// Every call blocks. It tries the endpoint that answered last, then the others, each for at most kPatience; where all
// refuse at once, it waits for their connections, all together for kPatience.
//
// Errors: Unavailable when no endpoint answers; else etcd's own code. A call whose answer was lost may have taken
// effect.
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_ETCD_ETCD_CLIENT_H_
#define LOCKSTEP_COMMON_ETCD_ETCD_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/etcd/etcd_url.h"
#include "common/sync/mutex.h"
#include "protos/etcd.grpc.pb.h"

namespace lockstep {

class EtcdClient {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(1);

  // Connects with the first call. For https it uses the files that the environment variables of etcd's own client name:
  // ETCDCTL_CACERT (else the system's roots), ETCDCTL_CERT and ETCDCTL_KEY. InvalidArgument or NotFound for a bad URL
  // or file.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Open(const std::string& url);

  // Keys are below the URL's prefix.
  absl::Status Put(const std::string& key, const std::string& value, int64_t lease);
  // The value, or nullopt.
  absl::StatusOr<std::optional<std::string>> Get(const std::string& key);
  // The value of the last key, in byte order, that begins with `beginning`; nullopt when there is none.
  absl::StatusOr<std::optional<std::string>> GetLast(const std::string& beginning);

  // A lease that ends `ttl` (whole seconds) after it was last kept alive, or a little later.
  absl::StatusOr<int64_t> Grant(absl::Duration ttl);
  // NotFound when the lease has ended.
  absl::Status KeepAlive(int64_t lease);
  // Ends the lease and removes its keys at once. OK also when it had already ended.
  absl::Status Revoke(int64_t lease);

 private:
  struct Endpoint {
    std::string address;
    std::unique_ptr<etcdserverpb::KV::Stub> keys;
    std::unique_ptr<etcdserverpb::Lease::Stub> leases;
  };

  EtcdClient(std::string prefix, std::vector<Endpoint> endpoints)
      : prefix_(std::move(prefix)), endpoints_(std::move(endpoints)) {}

  // Makes the call at one endpoint after another until one answers.
  absl::Status Call(const std::function<grpc::Status(const Endpoint&, grpc::ClientContext&)>& call);
  absl::StatusOr<std::optional<std::string>> Range(const etcdserverpb::RangeRequest& request);
  std::string PathOf(const std::string& key) const;

  const std::string prefix_;
  const std::vector<Endpoint> endpoints_;
  Mutex mutex_;
  size_t answers_ GUARDED_BY(mutex_) = 0;  // the endpoint that answered last
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_ETCD_ETCD_CLIENT_H_
