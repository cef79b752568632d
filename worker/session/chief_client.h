// How a worker reaches its chief: where it is, the key, and what can be fetched from it.
//
// Threading: thread-safe. Fetches block and are called by whoever needs the bytes; Shutdown ends them.
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
  std::string address;  // HOST:PORT; empty: read from `file`, or asked of `etcd`, at every attempt
  std::string file;     // DIR/chief/address; of a job in a bucket it stands for the newest record of the log
  CallerKey key;
  std::string etcd;  // where etcd knows of the job
};

// Calls that end together, from any thread.
class CallGroup {
 public:
  // Ends what is under way and refuses what comes later. Idempotent, never blocks.
  void Cancel();
  bool cancelled() const;
  // Blocks for `time`, or until Cancel; true when it was cancelled.
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

// All fetches block. Unavailable: the chief is away or its answer was cut off, try again. FailedPrecondition: the fence
// is not the chief's. Cancelled: by Shutdown, or by the group of the call.
class ChiefClient {
 public:
  // How long an attempt at a session may take: at least what a chief nearby needs, at most kConnectLimitMs.
  static constexpr absl::Duration kLeastConnectLimit = absl::Seconds(2);

  explicit ChiefClient(ChiefLocation location, absl::Duration least_connect_limit = kLeastConnectLimit);

  // The chief's address now, or the last one that the file or etcd gave while it gives none: a file that somebody
  // removes says nothing of the chief. The log hears of that once. NotFound when there never was one.
  absl::StatusOr<std::string> Address() const;
  const CallerKey& key() const { return location_.key; }
  // The chief has proved its key to this process, so that it has the right one.
  void SetProved() const { proved_ = true; }
  bool proved() const { return proved_; }
  // True the first time: that somebody else answers in the chief's place is said once.
  bool FirstStranger() const { return !met_stranger_.exchange(true); }
  AnswerLimit& connect_limit() const { return connect_limit_; }

  // The resolved job as YAML.
  absl::StatusOr<std::string> FetchJob(const WorkerFence& fence);
  // Bytes of a metagraph or a kernel plan, by their name.
  absl::StatusOr<std::string> FetchMetagraph(const WorkerFence& fence, const std::string& fingerprint);
  absl::StatusOr<std::string> FetchPlan(const WorkerFence& fence, const std::string& hash);
  // A share's stream, in order; `take` gets each piece with its offset. DataLoss when a chunk's checksum differs.
  absl::Status FetchShare(const WorkerFence& fence, const SnapshotId& snapshot, uint32_t share, uint32_t shares,
                          CallGroup& group,
                          const std::function<void(uint64_t offset, absl::Span<const char> bytes)>& take);

  // Ends what is under way and refuses what comes later.
  void Shutdown() { all_.Cancel(); }
  // Blocks for `time`; true when Shutdown came meanwhile.
  bool WaitForShutdown(absl::Duration time) { return all_.WaitForCancel(time); }

  // Bytes fetched so far: evidence of progress.
  uint64_t bytes_fetched() const { return bytes_fetched_.load(std::memory_order_relaxed); }

 private:
  class Call;

  // What the file says now.
  absl::StatusOr<std::string> ReadAddress() const;
  // What etcd says now.
  absl::StatusOr<std::string> AskEtcd() const;
  // What the job's log in the bucket says now.
  absl::StatusOr<std::string> ReadAddressInBucket() const;
  absl::Status Fetch(const proto::FetchRequest& request, CallGroup& group,
                     const std::function<void(uint64_t, absl::Span<const char>)>& take);
  absl::StatusOr<std::string> FetchWhole(const proto::FetchRequest& request);

  const ChiefLocation location_;
  mutable Mutex bucket_mutex_;
  mutable std::shared_ptr<JobPlace> bucket_ GUARDED_BY(bucket_mutex_);  // once it was opened
  mutable Mutex etcd_mutex_;
  mutable std::unique_ptr<EtcdClient> etcd_ GUARDED_BY(etcd_mutex_);  // once it was opened
  mutable AnswerLimit connect_limit_;
  mutable Mutex mutex_;
  mutable std::string last_address_ GUARDED_BY(mutex_);
  mutable bool said_ GUARDED_BY(mutex_) = false;  // that the file gives no address any more
  CallGroup all_;
  std::atomic<uint64_t> bytes_fetched_{0};
  mutable std::atomic<bool> proved_{false};
  mutable std::atomic<bool> met_stranger_{false};
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_CHIEF_CLIENT_H_
