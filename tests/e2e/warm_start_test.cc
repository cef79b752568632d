// `model.from`: a job that begins with the weights of another, on real processes.
#include <filesystem>
#include <string>

#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

constexpr char kNewest[] = "/checkpoints/step-000000020";

// One step from the weights at `from`; the digest of what came of it.
std::string DigestFrom(const std::string& name, const Words& more) {
  const std::string directory = TempPath(name);
  Words sets = Settings("1steps");
  sets.insert(sets.end(), more.begin(), more.end());
  const Result result = Run({"run", kJob, "--workers", "1", "--dir", directory}, sets);
  INFO(result.output);
  REQUIRE(result.code == kExitDone);
  return Digest(directory);
}

TEST_CASE("warm start: wherever the same weights lie, the same state follows", "[e2e]") {
  const std::string trained = CopyOfFinishedJob("trained"), file = TempPath("weights.safetensors");
  REQUIRE(Run({"checkpoint", "export", trained, "-o", file}).code == kExitDone);
  const std::string as_hugging_face = TempPath("hugging_face");
  fs::create_directories(as_hugging_face);
  fs::copy(file, as_hugging_face + "/model.safetensors");

  const std::string from_job = DigestFrom("of_job", {"model.from=" + trained});

  CHECK(DigestFrom("of_checkpoint", {"model.from=" + trained + kNewest}) == from_job);
  CHECK(DigestFrom("of_file", {"model.from=" + file}) == from_job);
  CHECK(DigestFrom("of_folder", {"model.from.path=" + as_hugging_face}) == from_job);
  CHECK(DigestFrom("of_nothing", {}) != from_job);
  CHECK(DigestFrom("of_part", {"model.from=" + file, "model.from.only=conv*"}) != from_job);
}

TEST_CASE("warm start: a checkpoint of TensorFlow gives the weights that it was exported with", "[e2e]") {
  const std::string trained = CopyOfFinishedJob("tensorflow"), folder = TempPath("exported");
  fs::create_directories(folder);
  const Result exported = Run({"checkpoint", "export", trained, "--format", "tensorflow", "-o", folder + "/ck-20"});
  INFO(exported.output);
  REQUIRE(exported.code == kExitDone);
  CHECK_THAT(exported.output, Contains("10 variables of the model, 10 slots of the optimizer") &&
                                  Contains("mean nothing to TensorFlow: lockstep.exponent.conv1.weight"));
  CHECK(fs::exists(folder + "/ck-20.data-00000-of-00001"));

  const std::string from_job = DigestFrom("of_job_again", {"model.from=" + trained});
  CHECK(DigestFrom("of_prefix", {"model.from=" + folder + "/ck-20"}) == from_job);
  CHECK(DigestFrom("of_index", {"model.from=" + folder + "/ck-20.index"}) == from_job);
  CHECK(DigestFrom("of_newest", {"model.from=" + folder}) == from_job);

  // It stays as it is, and the next one becomes the folder's newest.
  const std::string before = Read(folder + "/ck-20.index");
  const Result again = Run({"checkpoint", "export", trained, "--format", "tensorflow", "-o", folder + "/ck-20"});
  CHECK(again.code == kExitUsage);
  CHECK_THAT(again.output, Contains("name another prefix"));
  CHECK(Read(folder + "/ck-20.index") == before);
  const Result first = Run({"checkpoint", "export", trained, "--step", "0", "--format", "tensorflow", "--weights-only",
                            "-o", folder + "/ck-0"});
  CHECK(first.code == kExitDone);
  CHECK_THAT(first.output, Contains(" 0 slots"));
  CHECK_THAT(Read(folder + "/checkpoint"), Contains("model_checkpoint_path: \"ck-0\""));
  CHECK(DigestFrom("of_first", {"model.from=" + folder}) != from_job);

  CHECK_THAT(Run({"checkpoint", "export", trained, "--format", "tensorflow", "--ema", "-o", folder + "/a"}).output,
             Contains("leave out --ema"));
}

TEST_CASE("warm start: the first checkpoint holds the weights, and a report lies beside it", "[e2e]") {
  const std::string trained = CopyOfFinishedJob("source"), directory = TempPath("begun");
  const std::string before = TempPath("before.safetensors"), after = TempPath("after.safetensors");
  Words sets = Settings("20steps");
  sets.insert(sets.end(), {"model.from=" + trained, "checkpoint.keep_latest=9"});
  const Result begun = Run({"run", kJob, "--workers", "2", "--dir", directory}, sets);
  INFO(begun.output);
  REQUIRE(begun.code == kExitDone);
  CHECK_THAT(begun.output, Contains("model.from: ") && Contains("tensors of the model begin as in"));

  REQUIRE(Run({"checkpoint", "export", trained, "-o", before}).code == kExitDone);
  REQUIRE(Run({"checkpoint", "export", directory, "--step", "0", "-o", after}).code == kExitDone);
  CHECK(Read(before) == Read(after));
  CHECK_THAT(Read(directory + "/stats/warm_start.txt"), Contains("begin as there") && Contains("conv1.weight"));

  // It is read once: the job goes on without it.
  fs::remove_all(trained);
  Words longer = Settings("40steps");
  longer.insert(longer.end(), {"model.from=" + trained, "checkpoint.keep_latest=9"});
  const Result on = Run({"run", kJob, "--workers", "1", "--dir", directory}, longer);
  INFO(on.output);
  CHECK(on.code == kExitDone);
  CHECK_THAT(on.output, Contains("model.from is not read: the job goes on from step 20"));
}

TEST_CASE("warm start: what does not fit is said by run and by check, and nothing is begun", "[e2e]") {
  const std::string trained = CopyOfFinishedJob("other"), directory = TempPath("refused");
  Words sets = Settings("20steps");
  SECTION("names") { sets.push_back("model.from={path: " + trained + ", rename: {conv1.weight: conv9.weight}}"); }
  SECTION("a model of other shapes") {
    sets.insert(sets.end(), {"model.builtin={name: mlp, hidden: [16]}", "model.from=" + trained});
  }
  SECTION("nothing there") { sets.push_back("model.from=" + trained + "/nowhere"); }

  const Result run = Run({"run", kJob, "--workers", "1", "--dir", directory}, sets);
  const Result check = Run({"check", kJob, "--dir", directory}, sets);

  INFO(run.output << check.output);
  CHECK(run.code == kExitBadJob);
  CHECK(check.code == kExitBadJob);
  for (const Result& result : {run, check}) CHECK_THAT(result.output, Contains(trained));
  CHECK_FALSE(fs::exists(directory + "/checkpoints"));
}

}  // namespace
}  // namespace lockstep::e2e
