// Makes a process answer for itself: it shows that it runs, and on request writes what its threads do, with their
// stacks, to FOLDER/dump-ROLE-PID-N.txt.
//
// Two threads do that. One only shows every second that the process runs (Page::beat_ns) and takes the requests
// (SIGQUIT); it touches no file, so that a hung disk does not silence it. The other collects and writes.
//
// Threading: thread-safe, after StartLiveness.
#ifndef LOCKSTEP_COMMON_LIVENESS_DUMP_H_
#define LOCKSTEP_COMMON_LIVENESS_DUMP_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

// How long a process waits for its own dump at most. One takes a fraction of a second, and hardly more than one where
// threads do not answer; the machine or the disk may be slow.
inline constexpr absl::Duration kDumpLimit = absl::Seconds(5);

struct WrittenDump {
  std::string path;
  std::string doing;  // of all threads that do something, those that do it for longest first
};

// Begins to show that this process runs and to answer requests. `role`: "chief", "worker-1". Dumps go to `folder`,
// which is made when it is needed; where that does not go, or is empty, to the folder for temporary files. The newest
// 20 of a role are kept. REQUIRES: called once, by the main thread, before threads that do not block SIGQUIT were
// started.
void StartLiveness(const std::string& role, const std::string& folder);
// Another name of this process, and another folder, from now on. Nothing happens without StartLiveness.
void SetLivenessRole(const std::string& role);
void SetDumpFolder(const std::string& folder);

// Writes a dump and waits for it. DeadlineExceeded after kDumpLimit: the disk may hang as well; FailedPrecondition
// without StartLiveness. Must not be called while a lock is held that logging takes.
absl::StatusOr<WrittenDump> WriteDump(const std::string& reason);

// ": DOING; its stacks are in PATH", for the line that says why a process ends: writes a dump. Where none can be
// written, what is known without one, and why.
std::string DumpForLine(const std::string& reason);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LIVENESS_DUMP_H_
