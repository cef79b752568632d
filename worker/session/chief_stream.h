// An attempt to open a session with the chief, and the session itself: a bidirectional gRPC stream with a reading and a
// writing thread.
//
//   1 connecting ──opened──▶ 2 open ──closed──▶ 3 ended
//                └──────────closed────────────▶ 3
//
// Threading: thread-safe. Callbacks are called by the stream's own threads; `closed` is called once, as the last. The
// destructor cancels and joins; no callback comes after it.
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
    // Unauthenticated or PermissionDenied: the token is wrong. `handed_over`: the chief is exiting and leaves this
    // worker to its successor.
    std::function<void(const absl::Status&, bool handed_over)> closed;
  };

  // Begins to connect, without blocking.
  ChiefStream(const ChiefClient* client, Callbacks callbacks);
  ~ChiefStream();

  // Never blocks. False when nothing can be sent any more (`closed` was or will be called).
  bool Send(const WorkerFence& fence, const WorkerMessage& message);

  // Sends the queued messages, closes this side, and blocks at most `limit` for the end of the stream.
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
