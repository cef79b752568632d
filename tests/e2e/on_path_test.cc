// Somebody on the way between two workers of different hosts, who changes bytes of what they send one another. They
// notice each time: a generation ends, the next one begins, no worker counts as failed, and the weights are those of a
// run that nobody disturbed.
#include "tests/e2e/on_path.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/hosted_job.h"

namespace lockstep::e2e {
namespace {

TEST_CASE("on the path: who changes bytes between workers only ends generations", "[e2e]") {
  if (!Hosts::Allowed("somebody on the path")) return;
  const auto settings = [](const std::string& duration) {
    return Words{kInputs, kLabels, "train.duration=" + duration, "checkpoint.every=100steps",
                 "train.global_batch_size=16"};
  };
  HostedJob job("on_path", kJob, settings("1000000steps"), 2);
  constexpr int kChanges = 6;
  {
    OnPath somebody(job.hosts(), 1, job.hosts().Address(HostedJob::kChiefHost));
    job.WaitForTeam(2);
    for (int i = 0; i < kChanges; ++i) {
      const int before = job.Generations();
      int changed = somebody.changed();
      somebody.ChangeOne();
      // Again, where it was a segment that TCP sent for the second time: of those nobody looks at the bytes.
      job.WaitFor("a generation that ends", [&] {
        if (somebody.changed() > changed) somebody.ChangeOne();
        changed = somebody.changed();
        return job.Generations() > before;
      });
      somebody.LeaveAlone();
      job.WaitForTeam(2);
    }
    CHECK(somebody.changed() >= kChanges);
  }

  job.WaitForTeam(2);
  CHECK(job.Status()->failures() == 0);
  const std::string steps = absl::StrCat(job.Stop(), "steps");
  const std::string alone = job.directory() + ".undisturbed";
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", alone}, settings(steps)).code == kExitDone);
  CHECK(Digest(job.directory()) == Digest(alone));
}

}  // namespace
}  // namespace lockstep::e2e
