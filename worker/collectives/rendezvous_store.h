// The key-value store through which the ranks of a generation exchange addresses while a communicator forms. The
// worker's session implements it over the chief; `InProcessStore` serves tests and benchmarks.
//
// Invariants
//   * A key is written once. Callers prefix keys with the generation, so that no rank reads another generation's value.
//   * After Abort every Get and Set, blocked or new, returns Aborted.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_RENDEZVOUS_STORE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_RENDEZVOUS_STORE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep::worker {

class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  // AlreadyExists when the key holds other bytes; setting equal bytes again is OK.
  virtual absl::Status Set(absl::string_view key, absl::string_view bytes) = 0;
  // Blocks until somebody has set the key. DeadlineExceeded after `limit`.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration limit) = 0;
  // Ends all calls with Aborted. Idempotent, never blocks; the first cause stays.
  virtual void Abort(const absl::Status& cause) = 0;
};

// A store for ranks that are threads of one process.
class InProcessStore final : public RendezvousStore {
 public:
  absl::Status Set(absl::string_view key, absl::string_view bytes) override;
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration limit) override;
  void Abort(const absl::Status& cause) override;

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_RENDEZVOUS_STORE_H_
