// A small job whose chief is traced and hit at one system call (traced_process.h), and what must be true of its
// directory then and at the end.
//
// Threading: owned by the test.
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

// What the commit log of a directory says while no chief writes it.
struct Logged {
  int64_t term = 0;     // 0: nobody has claimed it yet
  int64_t newest = -1;  // step of the newest checkpoint that counts; -1: there is none
};

// Path below the directory → content, of everything that is no directory.
using Files = std::map<std::string, std::string>;

class TracedJob {
 public:
  // In a fresh directory, which goes with it; empty, or a copy of `original`.
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
  // True: the traced chief is held; false: it ended before.
  bool WaitUntilHeld();
  // Waits until the traced chief serves, and kills it.
  void KillTracedOnceItListens();
  // As another machine would find it, which does not see the locks of this one.
  void ForgetLock() const;

  // Reads the log. Every checkpoint that it names must be there and verify, byte by byte.
  Logged CheckLog() const;
  Files ReadFiles() const;
  // The chief that was started last and its worker end with 0, and the job is as if nobody had disturbed it.
  void CheckDone();
  // The second half of it alone.
  void CheckDirectory() const;
  // Of a checkpoint that the log never had: a chief that comes two terms after the one that wrote it cannot know
  // whether that was before the next one took over, sets it aside under this name, and the job computes it again.
  void MaySetAside(const std::string& name) { may_be_set_aside_ = name; }

  const std::string& directory() const { return directory_; }

  // Of an undisturbed run, made once.
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

// The calls at which a test hits: every `every`-th one from `first` on. LOCKSTEP_CALLS=FIRST:EVERY asks for others:
// 1:1 hits all of them.
struct Spread {
  int first = 1;
  int every = 1;
};
Spread SpreadOr(Spread usual);

// Says which kinds of calls were hit, of those that an undisturbed run makes. Only when all calls were asked for.
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
