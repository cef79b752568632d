// What a start leaves alone, and what is let go after it, on a real file system.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/server/job_store.h"
#include "chief/server/job_store_harness.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

// Files of this process that are open and lie below `directory`, or did.
std::vector<std::string> OpenFilesBelow(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const std::string file = fs::read_symlink(entry.path(), closed);
    if (absl::StartsWith(file, fs::canonical(directory).string() + "/checkpoints/")) files.push_back(file);
  }
  return files;
}

TEST_CASE("job store: what retention removes is held open by nobody, so that its room comes back", "[server]") {
  Job job;
  job.Train();
  const auto store = job.Open().value();
  CHECK_FALSE(OpenFilesBelow(job.dir()).empty());  // members may fetch it
  for (const uint64_t step : {40, 50, 60}) REQUIRE(job.Save(*store, step, store->recovered().ledger).ok());
  CHECK(OpenFilesBelow(job.dir()) == std::vector<std::string>());
}

TEST_CASE("job store: a start that is refused leaves the chief that runs the job elsewhere alone", "[server]") {
  Job job;
  job.Train();
  auto running = job.Open().value();
  fs::remove(job.In("chief/lock"));  // as seen from another machine
  SECTION("it is another job by now") {
    job.Set("train.seed=2");
    CHECK(absl::IsFailedPrecondition(job.Open().status()));
    CHECK(job.code == kExitBadJob);
  }
  SECTION("its token is damaged") {
    Write(job.In("chief/token"), "no token\n");
    CHECK_FALSE(job.Open().ok());
    CHECK(job.code == kExitStorage);
  }
  SECTION("its kernel plan is lost") {
    fs::remove(job.In(absl::StrCat("plans/", Sha256Hex(kPlan), ".pb")));
    CHECK_THAT(std::string(job.Open().status().message()), Contains("kernel plan"));
    CHECK(job.code == kExitStorage);
  }
  SECTION("it could not listen here") {
    job.Listen("192.0.2.1:4700");  // of no machine
    CHECK_THAT(std::string(job.Open().status().message()), Contains("--listen"));
    CHECK(job.code == kExitBadJob);
  }

  CHECK(job.Save(*running, 40, running->recovered().ledger).status() == absl::OkStatus());
}

}  // namespace
}  // namespace lockstep::chief
