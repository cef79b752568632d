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

// Never prompts, and notices within 15 s that the other side is gone.
inline constexpr char kDefaultSsh[] = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";

// Where one worker runs.
struct WorkerHost {
  std::string host;    // a host name for ssh
  int local_rank = 0;  // among the workers of that host
};

// One entry per worker. `text` is either "a,b:2" (names, each with its number of workers, by default 1) or the path of
// a file with a line per host ("b slots=2"; # begins a comment). InvalidArgument, with the place: a name or number is
// wrong, or there is no host. Codes of reading the file.
absl::StatusOr<std::vector<WorkerHost>> ReadHosts(const std::string& text);

// The parameters of one connection.
struct SshTarget {
  std::string self;  // this program
  std::string ssh;   // a command, with words separated by spaces
  std::string host;
  std::string directory;  // of the job, for its token
  int cause_fd = -1;      // as in `lockstep worker`
};

// The command line that runs `words` on the target's host, by `lockstep ssh-worker`.
std::vector<std::string> SshWords(const SshTarget& target, const std::vector<std::string>& words);

// A command for the remote shell: runs `words` with the first line of its input as LOCKSTEP_TOKEN.
std::string RemoteCommand(const std::vector<std::string>& words);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_WORKER_HOSTS_H_
