// The processes of one run of `lockstep run` or `lockstep hosts`: their command lines and logs, and queries to their
// chief.
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

// The options of `lockstep run` and `lockstep hosts`.
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
  // For `lockstep hosts`: the host of each worker, by number; empty: all on this machine.
  std::vector<WorkerHost> hosts;
  std::string ssh = kDefaultSsh;
  std::string program = "lockstep";     // path on those hosts
  std::string listen;                   // HOST:PORT of the chief; empty: on loopback
  std::vector<std::string> data_roots;  // of the workers
};

class LocalRun {
 public:
  // `folder`: the place of logs and of the address file of this run's chief: the job's directory, unless that is in a
  // bucket. Removes files of killed runs from it.
  LocalRun(RunOptions options, std::string directory, std::string folder, int workers);
  ~LocalRun();
  LocalRun(const LocalRun&) = delete;
  LocalRun& operator=(const LocalRun&) = delete;

  std::vector<std::string> Command(const supervisor::Role& role) const;
  std::string LogPath(const supervisor::Role& role) const;
  // The highest agreed step; nullopt if the chief does not answer.
  std::optional<int64_t> ReadStep();
  // Why this worker is held back: a notice that is still in force would make it leave again, or `lockstep drain` names
  // it or its host. Empty if it is not held.
  std::string WhyHeld(const supervisor::Role& role);
  // Reports an exit to the chief; does nothing if the chief does not answer.
  void ReportExit(const supervisor::ReportExit& exited);
  // Prints the last lines that this run added to a worker's log, after a failure.
  void PrintTail(const supervisor::Role& role) const;

 private:
  std::vector<std::string> ChiefWords() const;
  std::vector<std::string> WorkerWords(int index) const;
  // The file in which this run's chief publishes its address. The directory's own address may be that of another run's
  // chief, if this one's was refused.
  std::string AddressFile() const;
  std::string AddressPath() const;
  std::string TokenPath() const;
  absl::StatusOr<std::unique_ptr<AdminClient>> Connect() const;
  // Keeps the connection while the chief answers: a restarted chief may listen elsewhere.
  std::optional<proto::StatusReply> AskChief();

  const RunOptions options_;
  const std::string directory_;
  const std::string folder_;
  const int workers_;
  const std::string self_;
  std::string id_;                                 // identifies this run, as two containers may have equal pids
  std::vector<std::streamoff> earlier_log_bytes_;  // per worker: the size of its log before this run
  std::unique_ptr<AdminClient> client_;
  AnswerLimit ask_limit_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOCAL_RUN_H_
