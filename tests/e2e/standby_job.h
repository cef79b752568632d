// Shared parts of tests of standby chiefs: the settings of their job, and its expected end.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_E2E_STANDBY_JOB_H_
#define LOCKSTEP_TESTS_E2E_STANDBY_JOB_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/commands.h"

namespace lockstep::e2e {

struct StandbyJob {
  static inline const Words sets = Settings("2000steps", "250steps");

  // The digest of an undisturbed run.
  static const std::string& Undisturbed() {
    static const std::string digest = [] {
      const std::string directory = TempPath("undisturbed");
      const Result result = Run({"run", kJob, "--workers", "1", "--dir", directory}, sets);
      INFO(result.output);
      REQUIRE(result.code == kExitDone);
      return Digest(directory);
    }();
    return digest;
  }

  static void CheckDone(const std::string& directory, Watched& standby,
                        const std::vector<std::unique_ptr<Watched>>& workers) {
    const Ended chief = standby.End();
    INFO(standby.Output());
    CHECK(chief == Ended{});
    for (const auto& worker : workers) {
      const Ended ended = worker->End();
      INFO(worker->Output());
      CHECK(ended == Ended{});
    }
    CHECK(Digest(directory) == Undisturbed());
  }
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_STANDBY_JOB_H_
