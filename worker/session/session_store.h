// The rendezvous store of one generation, over the session: a key that a rank sets is sent to the chief, which forwards
// it to the other members.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_SESSION_SESSION_STORE_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_STORE_H_

#include <functional>
#include <string>
#include <utility>

#include "worker/collectives/rendezvous_store.h"

namespace lockstep::worker {

class SessionStore final : public RendezvousStore {
 public:
  // `send` sends a key and its value over the session; it does not block.
  explicit SessionStore(std::function<void(const std::string& key, const std::string& value)> send)
      : send_(std::move(send)) {}

  absl::Status Set(absl::string_view key, absl::string_view bytes) override;
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration limit) override {
    return entries_.Get(key, limit);
  }
  void Abort(const absl::Status& cause) override { entries_.Abort(cause); }

  // Adds a key that another member has set.
  void Deliver(absl::string_view key, absl::string_view bytes);

 private:
  const std::function<void(const std::string&, const std::string&)> send_;
  InProcessStore entries_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_STORE_H_
