#include "deploy/cli/slurm_submission.h"

#include <catch2/catch.hpp>

namespace lockstep::cli {
namespace {

SlurmSubmission Job() {
  SlurmSubmission job;
  job.name = "mnist";
  job.program = "/opt/lockstep/bin/lockstep";
  job.job_path = "/home/ada/mnist.yaml";
  job.directory = "/scratch/mnist";
  job.workers = 4;
  return job;
}

TEST_CASE("slurm submission: every worker has a node, and what the user adds comes last", "[cli]") {
  SlurmSubmission job = Job();
  job.partition = "spot";
  job.time = "2:00:00";
  job.overrides = {"train.seed=7"};
  job.options = {"--nodes=2", "--ntasks-per-node=2"};

  CHECK(ShellLine(SbatchCommand(job, "lockstep.sbatch")) ==
        "sbatch --parsable --job-name=mnist --nodes=4 --ntasks-per-node=1 --partition=spot --time=2:00:00 --nodes=2 "
        "--ntasks-per-node=2 lockstep.sbatch --lockstep /opt/lockstep/bin/lockstep /home/ada/mnist.yaml --dir "
        "/scratch/mnist --set train.seed=7");
}

TEST_CASE("slurm submission: with GPUs every worker has one, wherever Slurm finds it", "[cli]") {
  SlurmSubmission job = Job();
  job.gpus_per_worker = 1;

  CHECK(ShellLine(SbatchCommand(job, "s")) ==
        "sbatch --parsable --job-name=mnist --ntasks=4 --gpus-per-task=1 s --lockstep /opt/lockstep/bin/lockstep "
        "/home/ada/mnist.yaml --dir /scratch/mnist");
}

TEST_CASE("slurm submission: workers that join bring no job file", "[cli]") {
  SlurmSubmission job = Job();
  job.job_path.clear();

  CHECK(ShellLine(SbatchCommand(job, "s")) ==
        "sbatch --parsable --job-name=mnist --nodes=4 --ntasks-per-node=1 s --lockstep /opt/lockstep/bin/lockstep "
        "--join /scratch/mnist");
}

TEST_CASE("slurm submission: a shell reads the line as the words that it was made of", "[cli]") {
  CHECK(ShellLine({"a", "b c", "", "it's", "checkpoint={every: 1h}"}) ==
        R"(a 'b c' '' 'it'\''s' 'checkpoint={every: 1h}')");
}

TEST_CASE("slurm submission: the job's number is read from sbatch's answer, and nothing else is taken for one",
          "[cli]") {
  CHECK(*SubmittedJob("4711\n") == "4711");
  CHECK(*SubmittedJob("4711;cluster-b\n") == "4711");
  CHECK_FALSE(SubmittedJob("").ok());
  CHECK_FALSE(SubmittedJob("Submitted batch job 4711\n").ok());
}

}  // namespace
}  // namespace lockstep::cli
