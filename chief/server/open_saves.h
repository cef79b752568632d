// The saves that accept shares. The chief's loop opens and closes them without touching the storage; their files are
// made by the thread that brings the first share, and removed by the one that abandons the save. A snapshot may be
// saved several times, one after the other: each time is a Save of its own.
//
// Threading: thread-safe. Open, Close and Find never wait for the storage; the others do.
#ifndef LOCKSTEP_CHIEF_SERVER_OPEN_SAVES_H_
#define LOCKSTEP_CHIEF_SERVER_OPEN_SAVES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/shard_sink.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class OpenSaves {
 public:
  using MakeSink = std::function<absl::StatusOr<std::unique_ptr<ShardSink>>(const SnapshotId& id, uint32_t shares)>;
  class Save;

  // `make_sink` makes the files of a save; Sink calls it, for one call at a time per save.
  explicit OpenSaves(MakeSink make_sink) : make_sink_(std::move(make_sink)) {}

  void Open(const SnapshotId& id, uint32_t shares);
  // The save of this snapshot that is open; null if none is.
  std::shared_ptr<Save> Find(const SnapshotId& id);
  // Removes a save, so that the same snapshot can be opened anew, and returns it to be abandoned; null if none is open.
  std::shared_ptr<Save> Close(const SnapshotId& id);
  // Deletes what was written; no share is accepted afterwards. `save` may be null.
  static void Abandon(const std::shared_ptr<Save>& save);

  // Returns the sink for the shares of this save. FailedPrecondition: no such save is open. Else codes of
  // ShardSink::Open; the next call tries again.
  absl::StatusOr<std::shared_ptr<ShardSink>> Sink(const SnapshotId& id);
  // The same for `save`, which may be null; FailedPrecondition also if it was abandoned.
  absl::StatusOr<std::shared_ptr<ShardSink>> Sink(const SnapshotId& id, const std::shared_ptr<Save>& save);

 private:
  const MakeSink make_sink_;
  Mutex mutex_;
  std::map<SnapshotId, std::shared_ptr<Save>> saves_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_OPEN_SAVES_H_
