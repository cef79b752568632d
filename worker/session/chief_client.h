// The worker's client of its chief: finds its address, holds the key, and fetches data.
//
// Threading: thread-safe. Fetches block; Shutdown ends them.
#ifndef LOCKSTEP_WORKER_SESSION_CHIEF_CLIENT_H_
#define LOCKSTEP_WORKER_SESSION_CHIEF_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/etcd/etcd_client.h"
#include "common/net/answer_limit.h"
#include "common/net/chief_key.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "protos/session.grpc.pb.h"

namespace lockstep {
class JobPlace;
}  // namespace lockstep

namespace lockstep::worker {

struct ChiefLocation {
  std::string address;  // HOST:PORT; empty: read from `file` or queried from `etcd` at every attempt
  std::string file;     // DIR/chief/address; for a job in a bucket the newest record of the job's log is read instead
  CallerKey key;
  std::string etcd;  // URL of the job in etcd (common/etcd/etcd_url.h)
};

// Calls that are cancelled together. Thread-safe.
class CallGroup {
 public:
  // Cancels the calls in progress and refuses later ones. Idempotent, never blocks.
  void Cancel();
  bool cancelled() const;
  // Blocks for `time` or until Cancel; true if cancelled.
  bool WaitForCancel(absl::Duration time);

 private:
  friend class ChiefClient;
  // False: refused.
  bool Add(grpc::ClientContext* call);
  void Remove(grpc::ClientContext* call);

  mutable Mutex mutex_;
  CondVar changed_;
  std::set<grpc::ClientContext*> calls_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

// All fetches block. Unavailable: the chief is away or its answer was cut off; try again. FailedPrecondition: the chief
// rejects the fence. Cancelled: by Shutdown, or by the group of the call.
class ChiefClient {
 public:
  // The smallest time limit of an attempt to connect, enough for a chief nearby; the largest is kConnectLimitMs.
  static constexpr absl::Duration kLeastConnectLimit = absl::Seconds(2);

  explicit ChiefClient(ChiefLocation location, absl::Duration least_connect_limit = kLeastConnectLimit);

  // The chief's current address. If the file or etcd gives none any more, the last one that it gave: a removed file
  // does not mean that the chief is gone; this is logged once. NotFound if there never was an address. May block.
  absl::StatusOr<std::string> Address() const;
  const CallerKey& key() const { return location_.key; }
  // Records that the chief has proved the key to this process, so that the key is right.
  void SetProved() const { proved_ = true; }
  bool proved() const { return proved_; }
  // True on the first call only: to report once that another program answers in place of the chief.
  bool FirstStranger() const { return !met_stranger_.exchange(true); }
  AnswerLimit& connect_limit() const { return connect_limit_; }

  // The resolved job as YAML.
  absl::StatusOr<std::string> FetchJob(const WorkerFence& fence);
  // The bytes of a metagraph or a kernel plan, by name.
  absl::StatusOr<std::string> FetchMetagraph(const WorkerFence& fence, const std::string& fingerprint);
  absl::StatusOr<std::string> FetchPlan(const WorkerFence& fence, const std::string& hash);
  // Streams a share of a checkpoint; `take` receives the pieces in order, each with its offset. DataLoss when the
  // checksum of a chunk is wrong.
  absl::Status FetchShare(const WorkerFence& fence, const SnapshotId& snapshot, uint32_t share, uint32_t shares,
                          CallGroup& group,
                          const std::function<void(uint64_t offset, absl::Span<const char> bytes)>& take);

  // Cancels the calls in progress and refuses later ones.
  void Shutdown() { all_.Cancel(); }
  // Blocks for `time` or until Shutdown; true if shut down.
  bool WaitForShutdown(absl::Duration time) { return all_.WaitForCancel(time); }

  // The bytes fetched so far, as a measure of progress.
  uint64_t bytes_fetched() const { return bytes_fetched_.load(std::memory_order_relaxed); }

 private:
  class Call;

  // The current address by the file, by etcd, and by the job's log in the bucket.
  absl::StatusOr<std::string> ReadAddress() const;
  absl::StatusOr<std::string> AskEtcd() const;
  absl::StatusOr<std::string> ReadAddressInBucket() const;
  absl::Status Fetch(const proto::FetchRequest& request, CallGroup& group,
                     const std::function<void(uint64_t, absl::Span<const char>)>& take);
  absl::StatusOr<std::string> FetchWhole(const proto::FetchRequest& request);

  const ChiefLocation location_;
  mutable Mutex bucket_mutex_;
  mutable std::shared_ptr<JobPlace> bucket_ GUARDED_BY(bucket_mutex_);  // null until first used
  mutable Mutex etcd_mutex_;
  mutable std::unique_ptr<EtcdClient> etcd_ GUARDED_BY(etcd_mutex_);  // null until first used
  mutable AnswerLimit connect_limit_;
  mutable Mutex mutex_;
  mutable std::string last_address_ GUARDED_BY(mutex_);
  mutable bool said_ GUARDED_BY(mutex_) = false;  // logged that no address is given any more
  CallGroup all_;
  std::atomic<uint64_t> bytes_fetched_{0};
  mutable std::atomic<bool> proved_{false};
  mutable std::atomic<bool> met_stranger_{false};
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_CHIEF_CLIENT_H_
