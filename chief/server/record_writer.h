// Writes what is kept of a job for people (job_records.h) and the log of this process. What the storage does not take
// is kept for the next time, up to a limit.
//
// Threading: thread-compatible; of the storage's thread, and of the loop's after that has ended. Blocks on the storage.
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
  // `store` outlives it, and so does `log`, which may be null. `metagraph_events` gives the events of the metagraph; it
  // is asked for them once, if they are not stored yet.
  RecordWriter(JobStore* store, LogKeeper* log, std::function<std::string()> metagraph_events);

  // Writes all of it, the log, and once the events of the metagraph. The error is that of the statistics or of the
  // metagraph; Aborted with IsFenced: a newer chief took the job.
  absl::Status Write(const RecordBatch& batch);
  // The same, logging what could not be written: nothing comes after it but WriteEnd and WriteLog.
  void WriteLast(const RecordBatch& batch);
  // The statistics and the last lines of the timeline. An error is logged.
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
