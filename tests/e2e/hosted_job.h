// One job as real processes, each on a host of its own: the chief on host 0, worker N on host N. Like LocalJob, but
// with a network between the processes that a test can cut.
//
// Every wait is for a condition, with a generous limit; when it is exceeded, an exception has the tail of every log.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_E2E_HOSTED_JOB_H_
#define LOCKSTEP_TESTS_E2E_HOSTED_JOB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protos/session.pb.h"
#include "tests/e2e/hosts.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {

class HostedJob {
 public:
  static constexpr int kChiefHost = 0;
  // Retransmissions after which an unacknowledged connection fails, at 200, 400, 800 and 1,600 ms, so that a test need
  // not wait for the minute after which a silent peer is given up.
  static constexpr int kRetries = 3;

  // Makes a new directory below TEST_TMPDIR, starts the chief and waits for `workers` members that step. REQUIRES:
  // Hosts::Allowed.
  HostedJob(const std::string& name, std::string job, std::vector<std::string> overrides, int workers,
            int retries = kRetries);
  ~HostedJob();

  Hosts& hosts() { return hosts_; }
  void StartChief();
  void StartWorker(int number);
  Process& chief() { return processes_.at("chief"); }
  Process& worker(int number);

  // The chief's status; nullopt if it does not answer.
  std::optional<proto::StatusReply> Status() const;
  // Blocks until the condition holds; throws if a process ends meanwhile.
  void WaitFor(const std::string& what, const std::function<bool()>& condition);
  void WaitForStatus(const std::string& what, const std::function<bool(const proto::StatusReply&)>& condition);
  // Blocks until `size` workers are members and have stepped together for a while.
  void WaitForTeam(int size);
  // Stops the job, waits for the end of all processes, and returns the step that was saved.
  int64_t Stop();

  // The number of steps that the worker's present process has applied.
  int Applied(int number) const;
  // The number of generations that all chief processes have formed.
  int Generations() const;
  const std::string& directory() const { return directory_; }
  std::string Records() const { return directory_ + ".records"; }
  // The file in which workers find their chief's address.
  std::string SeenAddress() const { return directory_ + ".address"; }
  std::string LogOf(const std::string& process) const;

 private:
  std::string LogPath(const std::string& process) const { return directory_ + "." + process + ".log"; }
  void Start(const std::string& name, int host, const std::vector<std::string>& words);
  [[noreturn]] void GiveUp(const std::string& what) const;

  Hosts hosts_;
  const std::string directory_;
  const std::string job_;
  const std::vector<std::string> overrides_;
  const int workers_;
  std::map<std::string, Process> processes_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_HOSTED_JOB_H_
