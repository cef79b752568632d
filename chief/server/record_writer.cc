#include "chief/server/record_writer.h"

#include <utility>

#include "chief/logs/chief_logs.h"
#include "chief/stats/history_lines.h"
#include "common/log/log.h"

namespace lockstep::chief {

RecordWriter::RecordWriter(JobStore* store, LogKeeper* log, std::function<std::string()> metagraph_events)
    : store_(store),
      log_keeper_(log),
      metagraph_events_(std::move(metagraph_events)),
      events_("records for TensorBoard", [store](const std::string& records) { return store->AppendEvents(records); }),
      history_("lines of the job's history",
               [store](const std::string& lines) { return store->AppendLines(kHistoryFolder, lines); }),
      timeline_("lines of the job's timeline",
                [store](const std::string& lines) { return store->AppendLines(kTimelineFolder, lines); }),
      log_("lines of the chief's log",
           [store](const std::string& lines) { return store->AppendLines(kChiefLogFolder, lines); }) {}

absl::Status RecordWriter::Write(const RecordBatch& batch) {
  Append(batch);
  absl::Status status = store_->WriteStats(batch.stats);
  if (!metagraph_stored_) {
    const absl::Status stored = store_->StoreMetagraphEvents(metagraph_events_);
    metagraph_stored_ = stored.ok();
    status.Update(stored);
  }
  return status;
}

void RecordWriter::WriteLast(const RecordBatch& batch) {
  Append(batch);
  for (const Backlog* backlog : {&events_, &history_, &timeline_, &log_}) {
    if (!backlog->empty()) LS_LOG(warn, backlog->what(), ": the newest were not written");
  }
}

void RecordWriter::WriteEnd(const std::string& stats, const std::string& timeline) {
  timeline_.Write(timeline);
  const absl::Status written = store_->WriteStats(stats);
  if (!written.ok() && !IsFenced(written)) LS_LOG(warn, "worker statistics: ", written.message());
}

void RecordWriter::WriteLog() {
  if (log_keeper_ != nullptr) log_.Write(log_keeper_->Take());
}

void RecordWriter::Append(const RecordBatch& batch) {
  events_.Write(batch.events);
  history_.Write(batch.history);
  timeline_.Write(batch.timeline);
  WriteLog();
}

}  // namespace lockstep::chief
