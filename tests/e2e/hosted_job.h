// One job as real processes, each on a host of its own: the chief on host 0, worker N on host N. As LocalJob, but with
// a network between the processes that a test can cut.
//
// Waiting is by condition with a generous bound; a bound that is reached throws with the tail of every log.
//
// Threading: owned by the test.
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
  // After 200 ms, 400, 800 and 1,600 a connection on which nothing is acknowledged fails: a test need not wait for the
  // minute after which a silent peer is given up.
  static constexpr int kRetries = 3;

  // A fresh directory below TEST_TMPDIR. Starts the chief and waits for `workers` members that step. REQUIRES:
  // Hosts::Allowed.
  HostedJob(const std::string& name, std::string job, std::vector<std::string> overrides, int workers,
            int retries = kRetries);
  ~HostedJob();

  Hosts& hosts() { return hosts_; }
  void StartChief();
  void StartWorker(int number);
  Process& chief() { return processes_.at("chief"); }
  Process& worker(int number);

  // The chief's status now; nullopt when it does not answer.
  std::optional<proto::StatusReply> Status() const;
  // Blocks until the condition holds; throws when a process ends meanwhile.
  void WaitFor(const std::string& what, const std::function<bool()>& condition);
  void WaitForStatus(const std::string& what, const std::function<bool(const proto::StatusReply&)>& condition);
  // Blocks until so many workers are members and have stepped together for a while.
  void WaitForTeam(int size);
  // Asks for a stop, waits for the end of everybody, and returns the step that was saved.
  int64_t Stop();

  // Steps that the worker has applied in its present life.
  int Applied(int number) const;
  // Generations that the chief has formed in all its lives.
  int Generations() const;
  const std::string& directory() const { return directory_; }
  std::string Records() const { return directory_ + ".records"; }
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
