// One session of a generated worker: a stream to the chief on a connection of its own, which can be cut as the kernel
// cuts the connections of a killed process.
//
//   1 connecting ──opened──▶ 2 open ──closed──▶ 3 ended
//                └──────────closed────────────▶ 3
//
// Threading: thread-safe. The callbacks run on gRPC's threads; `closed` is called once and last.
#ifndef LOCKSTEP_TESTS_LOAD_SESSION_LINK_H_
#define LOCKSTEP_TESTS_LOAD_SESSION_LINK_H_

#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/net/chief_key.h"
#include "common/protocol/wire.h"
#include "common/sync/mutex.h"
#include "protos/session.grpc.pb.h"

namespace lockstep::load {

// Counts messages and their bytes by kind, the field number in the oneof.
class Traffic {
 public:
  static constexpr size_t kKinds = 32;
  struct Count {
    uint64_t messages = 0;
    uint64_t bytes = 0;
  };

  void Add(int kind, size_t bytes) {
    messages_[static_cast<size_t>(kind)] += 1;
    bytes_[static_cast<size_t>(kind)] += bytes;
  }
  Count Of(int kind) const { return {messages_[static_cast<size_t>(kind)], bytes_[static_cast<size_t>(kind)]}; }
  Count Total() const;

 private:
  std::array<std::atomic<uint64_t>, kKinds> messages_{};
  std::array<std::atomic<uint64_t>, kKinds> bytes_{};
};

// The traffic of all sessions together.
struct Traffics {
  Traffic to_chief;
  Traffic from_chief;
};

class SessionLink final : public grpc::ClientBidiReactor<proto::WorkerEnvelope, proto::ChiefEnvelope> {
 public:
  struct Callbacks {
    std::function<void()> opened;
    std::function<void(FencedCommand)> command;
    // Receives the link, which must be destroyed on another thread than gRPC's: the last channel takes gRPC's threads
    // with it.
    std::function<void(const absl::Status&, std::shared_ptr<SessionLink>)> closed;
  };

  // Passes the link to `take`, and starts the connection and the session.
  static void Open(const std::string& address, const CallerKey& key, Traffics* traffics, Callbacks callbacks,
                   const std::function<void(std::shared_ptr<SessionLink>)>& take);

  // Queues a message; dropped once the session ended.
  void Send(const proto::WorkerEnvelope& envelope);
  // Ends the session in order.
  void Cancel() { context_.TryCancel(); }

  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  SessionLink(Traffics* traffics, Callbacks callbacks) : traffics_(*traffics), callbacks_(std::move(callbacks)) {}
  void WriteNextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Traffics& traffics_;
  Callbacks callbacks_;
  std::shared_ptr<SessionLink> self_;  // keeps this alive while gRPC uses it
  grpc::ClientContext context_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<proto::Session::Stub> stub_;
  proto::ChiefEnvelope incoming_;
  Mutex mutex_;
  std::deque<proto::WorkerEnvelope> outgoing_ GUARDED_BY(mutex_);  // the first one is being written
  bool open_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::load

#endif  // LOCKSTEP_TESTS_LOAD_SESSION_LINK_H_
