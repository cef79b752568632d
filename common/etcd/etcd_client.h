// A job's keys in etcd, some of which end with a lease.
//
// Every call goes to the endpoint that answered last, then to the others, each for at most kPatience; it blocks.
//
// Errors: Unavailable when no endpoint answers; else what etcd says. A call whose answer was lost may have been done.
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

  // With https, the files that the variables of etcd's own client name: ETCDCTL_CACERT (else the system's roots),
  // ETCDCTL_CERT and ETCDCTL_KEY. Connects with the first call. InvalidArgument, NotFound: the URL or a file.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Open(const std::string& url);

  // Keys are below the URL's prefix.
  absl::Status Put(const std::string& key, const std::string& value, int64_t lease);
  // The value, or nullopt.
  absl::StatusOr<std::optional<std::string>> Get(const std::string& key);
  // The value of the last key, in the order of bytes, that begins so; nullopt: none does.
  absl::StatusOr<std::optional<std::string>> GetLast(const std::string& beginning);

  // A lease that ends `ttl` (whole seconds) after it was last kept alive, or a little later.
  absl::StatusOr<int64_t> Grant(absl::Duration ttl);
  // NotFound: it has ended.
  absl::Status KeepAlive(int64_t lease);
  // Ends it; its keys go at once. Ok also when it had ended.
  absl::Status Revoke(int64_t lease);

 private:
  struct Endpoint {
    std::string address;
    std::unique_ptr<etcdserverpb::KV::Stub> keys;
    std::unique_ptr<etcdserverpb::Lease::Stub> leases;
  };

  EtcdClient(std::string prefix, std::vector<Endpoint> endpoints)
      : prefix_(std::move(prefix)), endpoints_(std::move(endpoints)) {}

  // Makes the call at one endpoint after the other, until one answers.
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
