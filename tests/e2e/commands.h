// Shared parts of tests of commands: a finished job to copy and damage, commands that run to their end, and processes
// whose output is awaited.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_E2E_COMMANDS_H_
#define LOCKSTEP_TESTS_E2E_COMMANDS_H_

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status/exit_code.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {

using Words = std::vector<std::string>;

inline constexpr absl::Duration kLimit = absl::Seconds(60);

inline std::string TempPath(const std::string& name) {
  return absl::StrCat(std::getenv("TEST_TMPDIR"), "/bad.", getpid(), ".", name);
}

inline Words Settings(const std::string& duration = "20steps", const std::string& every = "10steps") {
  return {kInputs, kLabels, "train.duration=" + duration, "checkpoint.every=" + every};
}

inline Words Command(const Words& words, const Words& sets) {
  Words all = words;
  for (const std::string& set : sets) all.insert(all.end(), {"--set", set});
  return all;
}

struct Result {
  int code = 0;
  int signal = 0;
  std::string output;
};

inline Result Run(const Words& words, const Words& sets = {}) {
  Result result;
  const Ended ended = LocalJob::RunCommand(Command(words, sets), &result.output);
  result.code = ended.code;
  result.signal = ended.signal;
  return result;
}

inline void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string Digest(const std::string& directory) {
  const Result result = Run({"checkpoint", "digest", directory});
  REQUIRE(result.code == kExitDone);
  return result.output;
}

// The path of the newest record of a job's commit log.
inline std::string NewestRecord(const std::string& directory) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/log")) {
    const std::string name = entry.path().filename();
    if (newest.empty() || name < newest) newest = name;
  }
  return directory + "/log/" + newest + "/record.json";
}

// The directory of a job that ended with checkpoints of steps 0, 10 and 20; made once.
inline const std::string& FinishedJob() {
  static const std::string directory = [] {
    const std::string made = TempPath("finished");
    const Result result = Run({"run", kJob, "--workers", "1", "--dir", made}, Settings());
    if (result.code != kExitDone) throw std::runtime_error(result.output);
    return made;
  }();
  return directory;
}

// A copy of it that a test may damage.
inline std::string CopyOfFinishedJob(const std::string& name) {
  const std::string copy = TempPath(name);
  std::filesystem::remove_all(copy);
  std::filesystem::copy(FinishedJob(), copy, std::filesystem::copy_options::recursive);
  return copy;
}

// Waits until `condition`, which `what` describes, holds; fails the test after `limit`.
inline void WaitUntil(const std::string& what, const std::function<bool()>& condition, absl::Duration limit = kLimit) {
  const absl::Time until = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() >= until) FAIL("waited in vain until " << what);
    usleep(2000);
  }
}

// A process with its output in a file, and waits for text in it.
class Watched {
 public:
  Watched(const std::string& name, const Words& words, const Words& sets = {})
      : log_(TempPath(name + ".log")), process_(Full(Command(words, sets)), Fresh(log_)) {}

  Process& process() { return process_; }
  std::string Output() const { return Read(log_); }
  void WaitFor(const std::string& text) {
    const absl::Time until = absl::Now() + kLimit;
    while (Output().find(text) == std::string::npos) {
      if (absl::Now() >= until) FAIL("waited in vain for '" << text << "' in\n" << Output());
      const bool running = process_.Running();
      if (!running && Output().find(text) == std::string::npos) FAIL("ended without '" << text << "':\n" << Output());
      usleep(2000);
    }
  }
  Ended End() {
    const std::optional<Ended> ended = process_.Wait(kLimit);
    if (!ended.has_value()) FAIL("does not end:\n" << Output());
    return *ended;
  }

 private:
  static Words Full(const Words& words) {
    Words all = {kLockstep};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  static const std::string& Fresh(const std::string& log) {
    std::filesystem::remove(log);
    return log;
  }

  const std::string log_;
  Process process_;
};

struct BadSetting {
  std::string set;
  int code;
  std::string place;
  std::string remedy;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_COMMANDS_H_
