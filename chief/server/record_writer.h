// Writes the records of a job (job_records.h) and the log of this process. What the storage refuses is kept for the
// next attempt, up to a limit.
//
// Threading: thread-compatible; used by the storage thread, and by the loop's thread after that ended. Blocks on the
// storage.
#ifndef LOCKSTEP_CHIEF_SERVER_RECORD_WRITER_H_
#define LOCKSTEP_CHIEF_SERVER_RECORD_WRITER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "chief/logs/log_keeper.h"
#include "chief/server/backlog.h"
#include "chief/server/job_records.h"
#include "chief/server/job_store.h"

namespace lockstep::chief {

class RecordWriter {
 public:
  // `store` and `log`, which may be null, outlive the writer. `metagraph_events` returns the events of the metagraph;
  // it is called once, if they are not stored yet.
  RecordWriter(JobStore* store, LogKeeper* log, std::function<std::string()> metagraph_events);

  // Writes the batch and the log, and once the events of the metagraph. Returns the error of the statistics or of the
  // metagraph; Aborted with IsFenced: a newer chief took the job.
  absl::Status Write(const RecordBatch& batch);
  // As Write, but logs the records that could not be written. Only WriteEnd and WriteLog may follow.
  void WriteLast(const RecordBatch& batch);
  // Writes the statistics and the last lines of the timeline. Logs an error.
  void WriteEnd(const std::string& stats, const std::string& timeline);
  void WriteEvents(const std::string& events) { events_.Write(events); }
  void WriteLog();

 private:
  void Append(const RecordBatch& batch);

  JobStore* const store_;
  LogKeeper* const log_keeper_;
  const std::function<std::string()> metagraph_events_;
  Backlog events_;
  Backlog history_;
  Backlog timeline_;
  Backlog log_;
  bool metagraph_stored_ = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_RECORD_WRITER_H_
