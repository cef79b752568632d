// Partitions, on real processes: a chief and workers, each on a host of its own, whose links are cut, pulled, slowed
// down and readdressed while they train. Whatever happens, the weights are those of an undisturbed run, generations do
// not follow each other without end, and the job goes on by itself once the network is whole again. Longer faults, and
// all of them at random: chaos.sh.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/hosted_job.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;

Words PartitionSettings(const std::string& duration) {
  return {kInputs, kLabels, "train.duration=" + duration, "checkpoint.every=100steps", "train.global_batch_size=16"};
}

HostedJob Hosted(const std::string& name, int workers) {
  return HostedJob(name, kJob, PartitionSettings("1000000steps"), workers);
}

// Stops the job, and trains as many steps on one worker that nobody disturbs.
void EndsAsUndisturbed(HostedJob& job, int most_generations) {
  CHECK(job.Generations() <= most_generations);
  const std::string steps = absl::StrCat(job.Stop(), "steps");
  const std::string alone = job.directory() + ".undisturbed";
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", alone}, PartitionSettings(steps)).code == kExitDone);
  CHECK(Digest(job.directory()) == Digest(alone));
  std::filesystem::remove_all(alone);
}

TEST_CASE("partition: of a pair that cannot talk one is left out, the others step on, and it joins when it can",
          "[e2e]") {
  if (!Hosts::Allowed("a cut between two workers")) return;
  HostedJob job = Hosted("pair", 3);

  job.hosts().CutPair(1, 2);
  job.WaitForTeam(2);
  CHECK_THAT(job.LogOf("chief"), Contains("they are kept apart until a test succeeds"));
  job.hosts().MendPair(1, 2);
  job.WaitForTeam(3);

  EndsAsUndisturbed(job, 10);
}

TEST_CASE("partition: a pair of which one does not hear the other is kept apart too", "[e2e]") {
  if (!Hosts::Allowed("a cut one way")) return;
  HostedJob job = Hosted("one_way", 3);

  job.hosts().DropTo(1, 2);
  job.WaitForTeam(2);
  job.hosts().DeliverTo(1, 2);
  job.WaitForTeam(3);

  EndsAsUndisturbed(job, 10);
}

TEST_CASE("partition: workers whose chief is cut off step on, and it goes on with them when it is back", "[e2e]") {
  if (!Hosts::Allowed("a chief that is cut off")) return;
  HostedJob job = Hosted("chief", 2);
  const auto missed = [&](const std::string& name) { return absl::StrContains(job.LogOf(name), "lost the chief: "); };

  job.hosts().Isolate(HostedJob::kChiefHost);
  job.WaitFor("workers that miss their chief", [&] { return missed("worker-1") && missed("worker-2"); });
  const int applied = job.Applied(1);
  job.WaitFor("steps without a chief", [&] { return job.Applied(1) > applied + 100; });
  job.hosts().Rejoin(HostedJob::kChiefHost);
  job.WaitForTeam(2);

  EndsAsUndisturbed(job, 3);
}

TEST_CASE("partition: a worker whose host changes its address is left out, and its successor joins", "[e2e]") {
  if (!Hosts::Allowed("an address that changes")) return;
  HostedJob job = Hosted("address", 3);

  job.hosts().Readdress(3, "10.77.0.103");
  job.WaitForTeam(2);
  job.worker(3).Signal(SIGKILL);
  CHECK(job.worker(3).Wait(kLimit) == Ended{0, SIGKILL});
  job.StartWorker(3);
  job.WaitForTeam(3);

  EndsAsUndisturbed(job, 12);
}

TEST_CASE("partition: a link that comes and goes, and is slow while it is there, changes nothing", "[e2e]") {
  if (!Hosts::Allowed("a link that flaps")) return;
  HostedJob job = Hosted("flap", 2);
  if (!job.hosts().SlowDown(1, "50mbit")) std::cout << "this kernel slows no link down: it only flaps\n";

  for (int flap = 0; flap < 8; ++flap) {
    job.hosts().Unplug(1);
    for (int look = 0; look < 20; ++look) CHECK(job.Status().has_value());
    job.hosts().Plug(1);
    std::optional<uint64_t> step;
    job.WaitForStatus("a step", [&](const proto::StatusReply& status) {
      if (!step.has_value()) step = status.step();
      return status.step() > *step;
    });
  }
  job.WaitForTeam(2);

  EndsAsUndisturbed(job, 20);
}

}  // namespace
}  // namespace lockstep::e2e
