// How a worker reaches its chief: where it is, the token, and what can be fetched from it.
//
// Threading: thread-safe. Fetches block and are called by whoever needs the bytes; Shutdown ends them.
#ifndef LOCKSTEP_WORKER_SESSION_CHIEF_CLIENT_H_
#define LOCKSTEP_WORKER_SESSION_CHIEF_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "protos/session.grpc.pb.h"

namespace lockstep::worker {

struct ChiefLocation {
  std::string address;  // HOST:PORT; empty: read from `file` at every attempt
  std::string file;
  std::string token;
};

class ChiefClient {
 public:
  explicit ChiefClient(ChiefLocation location) : location_(std::move(location)) {}

  // The chief's address now. NotFound when the file is missing.
  absl::StatusOr<std::string> Address() const;
  const std::string& token() const { return location_.token; }

  // The resolved job as YAML.
  absl::StatusOr<std::string> FetchJob(const WorkerFence& fence);
  // Bytes of a metagraph or a kernel plan, by their name.
  absl::StatusOr<std::string> FetchMetagraph(const WorkerFence& fence, const std::string& fingerprint);
  absl::StatusOr<std::string> FetchPlan(const WorkerFence& fence, const std::string& hash);
  // A share's stream, in order; `take` gets each piece with its offset. DataLoss when a chunk's checksum differs.
  absl::Status FetchShare(const WorkerFence& fence, const SnapshotId& snapshot, uint32_t share, uint32_t shares,
                          const std::function<void(uint64_t offset, absl::Span<const char> bytes)>& take);

  // Ends what is under way and refuses what comes later.
  void Shutdown();

 private:
  class Call;

  absl::Status Fetch(const proto::FetchRequest& request,
                     const std::function<void(uint64_t, absl::Span<const char>)>& take);
  absl::StatusOr<std::string> FetchWhole(const proto::FetchRequest& request);

  const ChiefLocation location_;
  Mutex mutex_;
  std::set<grpc::ClientContext*> calls_ GUARDED_BY(mutex_);
  bool shut_down_ GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_CHIEF_CLIENT_H_
