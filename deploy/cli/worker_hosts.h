// The hosts of `lockstep hosts`, and how a worker is started on one.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_DEPLOY_CLI_WORKER_HOSTS_H_
#define LOCKSTEP_DEPLOY_CLI_WORKER_HOSTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {

// Asks nothing, and notices within 15 s that the other side is gone.
inline constexpr char kDefaultSsh[] = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";

// Where one worker runs.
struct WorkerHost {
  std::string host;    // as ssh takes it
  int local_rank = 0;  // among the workers of that host
};

// One for each worker. `text` is "a,b:2", names with how many workers they have (1), or the path of a file with a line
// for each host, "b slots=2", where # begins a comment. InvalidArgument, with the place: a name or number is wrong, or
// there is no host. Codes of reading where it is a file.
absl::StatusOr<std::vector<WorkerHost>> ReadHosts(const std::string& text);

// What is behind one connection.
struct SshTarget {
  std::string self;  // this program
  std::string ssh;   // a command, its words parted by spaces
  std::string host;
  std::string directory;  // of the job, for its token
  int cause_fd = -1;      // as of `lockstep worker`
};

// The command line that runs `words` on the target's host, by `lockstep ssh-worker`.
std::vector<std::string> SshWords(const SshTarget& target, const std::vector<std::string>& words);

// For a shell of the other side: runs `words` with the first line of its input as LOCKSTEP_TOKEN.
std::string RemoteCommand(const std::vector<std::string>& words);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_WORKER_HOSTS_H_
