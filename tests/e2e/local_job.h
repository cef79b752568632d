// One job as real processes: a chief and workers started from the `lockstep` binary, killed by the test, and observed
// through the chief's Admin service and the files on disk.
//
// Every wait is for a condition, with a generous limit; when it is exceeded, the test fails with the tail of every log.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_E2E_LOCAL_JOB_H_
#define LOCKSTEP_TESTS_E2E_LOCAL_JOB_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "protos/session.pb.h"
#include "protos/stats.pb.h"

namespace lockstep::e2e {

// Paths relative to a test's working directory.
inline constexpr char kLockstep[] = "deploy/cli/lockstep";
inline constexpr char kJob[] = "deploy/jobs/fashion_mnist_short.yaml";

// Data with fewer samples than that job's own, because every process and command reads and checks all of them.
inline constexpr char kInputs[] = "data.train.inputs=/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";
inline constexpr char kLabels[] = "data.train.labels=/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz";

// How a process ended: by a code, or by a signal when `signal` is not zero.
struct Ended {
  int code = 0;
  int signal = 0;
  friend bool operator==(const Ended&, const Ended&) = default;
};

// A child process with its output in a file. The destructor kills it.
class Process {
 public:
  // Starts `words`; stdout and stderr are appended to `log`.
  Process(const std::vector<std::string>& words, const std::string& log);
  // Starts `words`, after `in_child` was called between fork and exec to set up the child.
  Process(const std::vector<std::string>& words, const std::function<void()>& in_child);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  // Whether it has not ended yet.
  bool Running();
  // Waits for its end; nullopt after `limit`.
  std::optional<Ended> Wait(absl::Duration limit);

 private:
  pid_t pid_ = -1;
  std::optional<Ended> ended_;
};

class LocalJob {
 public:
  // Makes a new directory below TEST_TMPDIR for `job` (a path in the source tree) with `overrides` (key=value); for
  // kJob they follow kInputs and kLabels.
  LocalJob(const std::string& name, std::string job, std::vector<std::string> overrides);
  ~LocalJob();

  // Adds an override for processes that are started from now on.
  void Override(std::string setting) { overrides_.push_back(std::move(setting)); }
  void StartChief(int expected_workers);
  // `more`: further options of `lockstep worker`.
  void StartWorker(int index, const std::vector<std::string>& more = {});
  Process& chief() { return processes_.at("chief"); }
  Process& worker(int index);
  // Starts the chief and `workers` workers, and waits until all have exited with 0.
  void RunUndisturbed(int workers);

  // Sends SIGKILL, and checks that this ended the process.
  void Kill(const std::string& process);
  void KillEverything();

  // Blocks until the chief reports at least this agreed step.
  void WaitForStep(uint64_t step);
  // Blocks until `condition` holds for the chief's status.
  void WaitForStatus(const std::string& what, const std::function<bool(const proto::StatusReply&)>& condition);
  // The chief's status; nullopt if it does not answer.
  std::optional<proto::StatusReply> Status();
  // Blocks until the process has ended; returns how.
  Ended WaitForEnd(const std::string& process);

  // The output of `lockstep checkpoint digest DIR [--step S]`.
  std::string Digest(std::optional<int64_t> step = std::nullopt) const;
  // The present stats/worker_stats.json.
  WorkerStatsFile Stats() const;
  // Runs `lockstep WORDS…` to its end; `output` receives both of its streams.
  static Ended RunCommand(const std::vector<std::string>& words, std::string* output);

  const std::string& directory() const { return directory_; }
  std::string LogOf(const std::string& process) const;
  // Replays every record through a new core. Returns the number of records compared.
  int ReplayRecords() const;

 private:
  std::string LogPath(const std::string& process) const { return directory_ + "." + process + ".log"; }
  [[noreturn]] void GiveUp(const std::string& what);

  std::string job_;
  std::vector<std::string> overrides_;
  std::string directory_;
  std::string records_;
  std::map<std::string, Process> processes_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_LOCAL_JOB_H_
