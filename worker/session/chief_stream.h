// One attempt at a session with the chief, and the session it becomes: a bidirectional stream with a thread that reads
// and one that writes.
//
//   1 connecting ──opened──▶ 2 open ──closed──▶ 3 ended
//                └──────────closed────────────▶ 3
//
// Threading: thread-safe. The callbacks come from the stream's own threads, `closed` once and last. The destructor
// cancels and joins, and no callback comes after it.
#ifndef LOCKSTEP_WORKER_SESSION_CHIEF_STREAM_H_
#define LOCKSTEP_WORKER_SESSION_CHIEF_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/chief_channel.h"
#include "common/protocol/wire.h"
#include "common/sync/mutex.h"
#include "common/sync/queue.h"
#include "protos/session.grpc.pb.h"
#include "worker/session/chief_client.h"

namespace lockstep::worker {

class ChiefStream {
 public:
  struct Callbacks {
    std::function<void()> opened;
    std::function<void(FencedCommand)> command;
    // Unauthenticated or PermissionDenied: the token is not the right one. `handed_over`: the chief was told to go, and
    // leaves this worker to the next one.
    std::function<void(const absl::Status&, bool handed_over)> closed;
  };

  // Begins to connect.
  ChiefStream(const ChiefClient* client, Callbacks callbacks);
  ~ChiefStream();

  // Never blocks. False when nothing can be sent any more (then `closed` comes or came).
  bool Send(const WorkerFence& fence, const WorkerMessage& message);

  // Sends what is queued, then closes this side, and waits at most `limit` for the end.
  void Flush(absl::Duration limit);

 private:
  using Stream = grpc::ClientReaderWriter<proto::WorkerEnvelope, proto::ChiefEnvelope>;

  void Run();
  absl::Status Converse(bool& handed_over);
  absl::Status AwaitConnection(const ChiefChannel& chief, const std::string& address);
  absl::Status Stranger(const std::string& address);
  void Write(Stream* stream);

  const ChiefClient* const client_;
  const Callbacks callbacks_;
  grpc::ClientContext context_;
  BoundedQueue<proto::WorkerEnvelope> outgoing_;
  Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_CHIEF_STREAM_H_
