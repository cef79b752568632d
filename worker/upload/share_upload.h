// Stage 8: streams shares of snapshots to the chief, in chunks with checksums. It uses a connection of its own, so that
// uploads delay no other messages.
//
// Threading: thread-safe; owns one thread, which uploads one share at a time.
#ifndef LOCKSTEP_WORKER_UPLOAD_SHARE_UPLOAD_H_
#define LOCKSTEP_WORKER_UPLOAD_SHARE_UPLOAD_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "common/digest/state_digest.h"
#include "common/net/chief_key.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "common/sync/queue.h"
#include "worker/step/host_state.h"

namespace grpc {
class ClientContext;
}

namespace lockstep::worker {

struct ShareJob {
  std::string chief;  // address
  WorkerFence fence;
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  std::shared_ptr<const HostState> state;
  std::shared_ptr<const StateDigests> digests;  // computed when the snapshot was announced
};

class ShareUploader {
 public:
  // Called on the uploader's thread when the chief has stored a share, or when the upload failed; not after Cancel.
  using Done = std::function<void(const ShareJob& job, const absl::Status& status)>;

  ShareUploader(CallerKey key, Done done);
  // Cancels the upload in progress.
  ~ShareUploader();

  // Never blocks. ResourceExhausted when too many are waiting.
  absl::Status Start(ShareJob job);
  // Ends the upload in progress if it is of this snapshot. (Shares still queued are refused by the chief, since their
  // save is not open.)
  void Cancel(const SnapshotId& snapshot);

  // Bytes sent so far: evidence of progress.
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  void Run();
  absl::Status Upload(const ShareJob& job);

  const CallerKey key_;
  const Done done_;
  BoundedQueue<ShareJob> queue_;
  std::atomic<uint64_t> bytes_sent_{0};
  Mutex mutex_;
  grpc::ClientContext* current_ GUARDED_BY(mutex_) = nullptr;
  std::optional<SnapshotId> current_snapshot_ GUARDED_BY(mutex_);
  bool current_cancelled_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_UPLOAD_SHARE_UPLOAD_H_
