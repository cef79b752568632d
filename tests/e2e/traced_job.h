// A small job whose chief is traced and hit at one system call (traced_process.h), with checks of its directory at that
// moment and at the end.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_E2E_TRACED_JOB_H_
#define LOCKSTEP_TESTS_E2E_TRACED_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/commands.h"
#include "tests/e2e/traced_process.h"

namespace lockstep::e2e {

// The content of a directory's commit log while no chief writes it.
struct Logged {
  int64_t term = 0;     // 0: no term was claimed yet
  int64_t newest = -1;  // step of the newest checkpoint that counts; -1: there is none
};

// The content of every file, by its path below the directory.
using Files = std::map<std::string, std::string>;

class TracedJob {
 public:
  // Makes a new directory, empty or a copy of `original`; the destructor removes it.
  explicit TracedJob(const std::string& original = "");
  ~TracedJob();

  void StartTraced(Hit hit);
  void StartChief();
  void StartWorker();
  TracedProcess& traced() { return *traced_; }
  Watched& chief() { return *chief_; }
  void KillWorker() { worker_.reset(); }

  Ended EndOfTraced();
  std::string TracedOutput() const { return Read(TracedLog()); }
  // Returns whether the traced chief is held; false if it ended before.
  bool WaitUntilHeld();
  // Waits until the traced chief listens, and kills it.
  void KillTracedOnceItListens();
  // Removes the chief's lock, as on another machine, which does not see the locks of this one.
  void ForgetLock() const;

  // Reads the log, and checks that every checkpoint that it names exists and verifies, byte by byte.
  Logged CheckLog() const;
  Files ReadFiles() const;
  // Checks that the newest chief and its worker end with 0, and that the job is as if undisturbed.
  void CheckDone();
  // Checks only that the job is as if undisturbed.
  void CheckDirectory() const;
  // Allows the checkpoint `name` in set_aside/. A checkpoint that was never recorded is set aside by a chief two terms
  // later, which cannot know whether it was published before the next chief took over; the job computes it again.
  void MaySetAside(const std::string& name) { may_be_set_aside_ = name; }

  const std::string& directory() const { return directory_; }

  // The calls of an undisturbed run, which is made once.
  static const std::vector<TracedCall>& UndisturbedCalls() { return Undisturbed().calls; }
  static int64_t last_step();

 private:
  struct Reference {
    std::string digest;
    std::vector<TracedCall> calls;
  };
  static const Reference& Undisturbed();

  std::string TracedLog() const { return directory_ + ".traced.log"; }
  std::string Name(const std::string& process) const;

  const std::string directory_;
  std::string may_be_set_aside_;
  int started_ = 0;
  std::optional<TracedProcess> traced_;
  std::optional<Watched> chief_;
  std::optional<Watched> worker_;
};

// The calls that a test hits: every `every`-th one from `first` on. LOCKSTEP_CALLS=FIRST:EVERY overrides them; 1:1 hits
// all.
struct Spread {
  int first = 1;
  int every = 1;
};
Spread SpreadOr(Spread usual);

// Prints the number of hits and, if LOCKSTEP_CALLS is set, which kinds of calls of an undisturbed run were not hit.
class Coverage {
 public:
  explicit Coverage(std::string what) : what_(std::move(what)) {}
  ~Coverage();
  void Add(const TracedCall& call) {
    ++hits_;
    kinds_.insert(call.Kind());
  }
  int hits() const { return hits_; }

 private:
  const std::string what_;
  int hits_ = 0;
  std::set<std::string> kinds_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_TRACED_JOB_H_
