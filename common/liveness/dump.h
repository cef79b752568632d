// Makes a process observable: it shows that it is running, and on request dumps the activities and stacks of its
// threads to FOLDER/dump-ROLE-PID-N.txt.
//
// It uses two threads. One shows every second that the process runs (Page::beat_ns) and receives requests (SIGQUIT); it
// touches no file, so that a hung disk cannot stop it. The other collects and writes dumps.
//
// Threading: thread-safe, after StartLiveness.
#ifndef LOCKSTEP_COMMON_LIVENESS_DUMP_H_
#define LOCKSTEP_COMMON_LIVENESS_DUMP_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

// How long a process waits for its own dump. A dump takes a fraction of a second, or about a second when threads do not
// answer; the limit allows for a slow machine or disk.
inline constexpr absl::Duration kDumpLimit = absl::Seconds(5);

struct WrittenDump {
  std::string path;
  std::string doing;  // the activities of all threads, longest first
};

// Begins to show that this process runs and to answer requests. `role`: "chief", "worker-1". Dumps go to `folder`,
// which is created on demand; if that fails or `folder` is empty, to the directory for temporary files. The newest 20
// of a role are kept. REQUIRES: called once, by the main thread, before threads that do not block SIGQUIT were started.
void StartLiveness(const std::string& role, const std::string& folder);
// Change the role of this process and the folder of its dumps. No effect without StartLiveness.
void SetLivenessRole(const std::string& role);
void SetDumpFolder(const std::string& folder);

// Writes a dump and waits for it. DeadlineExceeded after kDumpLimit, as when the disk hangs too; FailedPrecondition
// without StartLiveness. Must not be called while holding a lock that logging takes.
absl::StatusOr<WrittenDump> WriteDump(const std::string& reason);

// ": DOING; its stacks are in PATH", for the line that says why a process ends. Writes a dump; when it cannot, returns
// what is known without one, and the reason.
std::string DumpForLine(const std::string& reason);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LIVENESS_DUMP_H_
