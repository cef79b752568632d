// The processes of one run: their commands and logs, and what the chief says of them.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_DEPLOY_CLI_LOCAL_RUN_H_
#define LOCKSTEP_DEPLOY_CLI_LOCAL_RUN_H_

#include <cstdint>
#include <ios>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/answer_limit.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/worker_hosts.h"
#include "deploy/supervisor/supervisor.h"
#include "worker/notice/notices.h"

namespace lockstep::cli {

// What `lockstep run` and `lockstep hosts` were told.
struct RunOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  std::string directory;
  std::string logs;
  int workers = 0;
  std::string kill_every;
  uint64_t kill_seed = 0;
  std::string device = "auto";
  worker::NoticeOptions notices;
  std::string record_directory;
  // Of `lockstep hosts`: where each worker runs, in the order of their numbers; empty: all on this machine.
  std::vector<WorkerHost> hosts;
  std::string ssh = kDefaultSsh;
  std::string program = "lockstep";     // on those hosts
  std::string listen;                   // the chief, HOST:PORT; empty: on loopback
  std::vector<std::string> data_roots;  // of the workers
};

class LocalRun {
 public:
  // `folder`: where logs and the address of this run's chief go; the job's directory, unless that is in a bucket.
  // Removes what runs that were killed left behind there.
  LocalRun(RunOptions options, std::string directory, std::string folder, int workers);
  ~LocalRun();
  LocalRun(const LocalRun&) = delete;
  LocalRun& operator=(const LocalRun&) = delete;

  std::vector<std::string> Command(const supervisor::Role& role) const;
  std::string LogPath(const supervisor::Role& role) const;
  // The highest agreed step; nothing when the chief cannot be asked.
  std::optional<int64_t> ReadStep();
  // Why this worker is kept away: a notice that stands sends it away again, and `lockstep drain` names it or its host.
  std::string WhyHeld(const supervisor::Role& role);
  // Tells the chief; not when it does not answer.
  void ReportExit(const supervisor::ReportExit& exited);
  // The end of what this run added to a worker's log, for a run that failed.
  void PrintTail(const supervisor::Role& role) const;

 private:
  std::vector<std::string> ChiefWords() const;
  std::vector<std::string> WorkerWords(int index) const;
  // Where this run's chief says its address: another run's chief may live in the directory, and this one's be refused.
  std::string AddressFile() const;
  std::string AddressPath() const;
  std::string TokenPath() const;
  absl::StatusOr<std::unique_ptr<AdminClient>> Connect() const;
  // A connection is kept while it answers: a chief that starts again may listen elsewhere.
  std::optional<proto::StatusReply> AskChief();

  const RunOptions options_;
  const std::string directory_;
  const std::string folder_;
  const int workers_;
  const std::string self_;
  std::string id_;                                 // of this run: pids are equal in two containers
  std::vector<std::streamoff> earlier_log_bytes_;  // per worker: of runs before this one
  std::unique_ptr<AdminClient> client_;
  AnswerLimit ask_limit_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOCAL_RUN_H_
