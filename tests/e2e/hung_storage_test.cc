// A chief whose directory does not answer, as with a mount that hangs, on real processes: every thread of it that would
// change a file there stands before that call.
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/traced_process.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;

// "step" of the status as JSON; -1: there is none.
int64_t StepIn(const std::string& status) {
  constexpr char kField[] = "\"step\": ";
  const size_t at = status.find(kField);
  return at == std::string::npos ? -1 : std::stoll(status.substr(at + sizeof kField - 1));
}

Words WorkerOf(const std::string& directory, const std::string& name) {
  return {"worker", "--chief-file", directory + "/chief/address", "--token-file", directory + "/chief/token", "--name",
          name};
}

TEST_CASE("hung storage: it is said, steps go on and workers join; when it answers again nothing was lost", "[e2e]") {
  if (!TracedProcess::Allowed("a chief whose storage hangs")) return;
  const Words sets = Settings("5000steps", "1000steps");
  const std::string directory = std::filesystem::canonical(std::getenv("TEST_TMPDIR")).string() + "/hung_storage";
  const std::string log = directory + ".log";
  Words words = {kLockstep};
  const Words rest = Command({"chief", kJob, "--dir", directory, "--expected-workers", "1"}, sets);
  words.insert(words.end(), rest.begin(), rest.end());
  // The statistics that a chief that runs writes every two seconds, the second time.
  const auto counts = [](const TracedCall& call) { return absl::StrContains(call.path, "-> stats/worker_stats.json"); };
  TracedProcess chief(words, log, directory, {.kind = HitKind::kHang, .call = 2, .counts = counts});
  Watched first("first", WorkerOf(directory, "worker-0"));
  REQUIRE(chief.WaitUntilHeld(kLimit) == true);
  const auto status = [&] { return Run({"status", "--dir", directory, "--json"}).output; };
  const int64_t step = StepIn(status());

  WaitUntil("it is said", [&] { return absl::StrContains(Read(log), "the storage has not answered for"); });
  WaitUntil("the status says so", [&] { return absl::StrContains(status(), "it does not answer"); });
  WaitUntil("steps were made", [&] { return StepIn(status()) > step + 50; });
  Watched second("second", WorkerOf(directory, "worker-1"));
  WaitUntil("another worker is a member", [&] { return absl::StrContains(status(), "\"rank\": 1"); });
  CHECK_FALSE(absl::StrContains(Read(log), "saved step 1000"));

  chief.Release();
  const std::optional<Ended> ended = chief.Wait(2 * kLimit);  // thousands of steps
  CAPTURE(Read(log));
  CHECK(ended == Ended{});
  CHECK_THAT(Read(log), Contains("the storage answers again"));
  CHECK(first.End() == Ended{});
  CHECK(second.End() == Ended{});
  const std::string undisturbed = TempPath("undisturbed");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", undisturbed}, sets).code == kExitDone);
  CHECK(Digest(directory) == Digest(undisturbed));
}

}  // namespace
}  // namespace lockstep::e2e
