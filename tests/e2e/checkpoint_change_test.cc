// `lockstep checkpoint pin|unpin|rm` and `checkpoint.keep_every`, on real processes.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

std::set<std::string> Checkpoints(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory + "/checkpoints")) names.insert(entry.path().filename());
  return names;
}

// "saved step N" of a chief's log, without step 0.
std::set<std::string> Saved(const std::string& output) {
  std::set<std::string> names;
  const std::regex saved("saved step ([0-9]+)");
  for (std::sregex_iterator found(output.begin(), output.end(), saved), end; found != end; ++found) {
    if ((*found)[1] != "0") names.insert(absl::StrFormat("step-%09d", std::stoll((*found)[1])));
  }
  return names;
}

std::string StepOfName(const std::string& name) { return std::to_string(std::stoll(name.substr(name.find('-') + 1))); }

TEST_CASE("checkpoint: one of each distance stays, and so does what was pinned while the job ran", "[e2e]") {
  const std::string directory = TempPath("kept");
  Words sets = Settings("100000steps", "10steps");
  // Saves are further apart than a step, so each of them stays.
  sets.insert(sets.end(), {"checkpoint.keep_latest=1", "checkpoint.keep_every=1steps"});
  Watched first("kept.first", {"run", kJob, "--workers", "1", "--dir", directory}, sets);
  WaitUntil("four checkpoints are saved", [&] { return Saved(first.Output()).size() >= 4; });
  const std::set<std::string> saved = Saved(first.Output());
  const std::string pinned = StepOfName(*saved.begin()), removed = StepOfName(*std::next(saved.begin()));

  const Result pin = Run({"checkpoint", "pin", directory, "--step", pinned});
  INFO(pin.output);
  REQUIRE(pin.code == kExitDone);
  const Result kept = Run({"checkpoint", "rm", directory, "--step", pinned});
  CHECK(kept.code == kExitBadJob);
  CHECK_THAT(kept.output, Contains("is pinned"));
  const Result missing = Run({"checkpoint", "pin", directory, "--step", "15"});
  CHECK(missing.code == kExitStorage);
  CHECK_THAT(missing.output, Contains("no checkpoint of step 15"));
  CHECK(Run({"checkpoint", "rm", directory, "--step", removed}).code == kExitDone);
  CHECK_THAT(Run({"checkpoint", "ls", directory, "--step", pinned}).output, Contains("  pinned"));
  REQUIRE(Run({"stop", "--dir", directory}).code == kExitDone);
  first.End();
  std::set<std::string> all = Saved(first.Output());
  all.erase(*std::next(saved.begin()));
  CHECK(Checkpoints(directory) == all);

  // Without a chief.
  const std::string before = Digest(directory);
  const std::string third = *std::next(saved.begin(), 2);
  CHECK(Run({"checkpoint", "rm", directory, "--step", StepOfName(third)}).code == kExitDone);
  CHECK_FALSE(Checkpoints(directory).contains(third));
  CHECK(Run({"checkpoint", "unpin", directory, "--step", pinned}).code == kExitDone);
  CHECK(Run({"checkpoint", "verify", directory}).code == kExitDone);
  CHECK(Digest(directory) == before);
}

TEST_CASE("checkpoint: the job goes on to the same state after its checkpoints were pinned and removed", "[e2e]") {
  const std::string directory = CopyOfFinishedJob("upkept");
  CHECK(Run({"checkpoint", "pin", directory, "--step", "0"}).code == kExitDone);
  CHECK(Run({"checkpoint", "rm", directory, "--step", "10"}).code == kExitDone);
  const Words longer = Settings("40steps");
  const Result on = Run({"run", kJob, "--workers", "1", "--dir", directory}, longer);
  INFO(on.output);
  REQUIRE(on.code == kExitDone);
  CHECK_THAT(on.output, Contains("from step 20"));
  const std::string undisturbed = TempPath("upkept.undisturbed");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", undisturbed}, longer).code == kExitDone);
  CHECK(Digest(directory) == Digest(undisturbed));
}

TEST_CASE("checkpoint: a resume with another model is refused, and says what the two differ in", "[e2e]") {
  const std::string directory = CopyOfFinishedJob("other_model");
  Words sets = Settings("40steps");
  sets.push_back("model.builtin={name: lenet, classes: 12}");
  const Result refused = Run({"run", kJob, "--workers", "1", "--dir", directory}, sets);
  CHECK(refused.code == kExitBadJob);
  INFO(refused.output);
  CHECK_THAT(refused.output, Contains("model.builtin") && Contains("12"));
  CHECK_THAT(Run({"checkpoint", "diff", directory, FinishedJob()}).output, Contains("the same state, bit for bit"));
  CHECK_THAT(Run({"checkpoint", "diff", directory, FinishedJob(), "--step", "10"}).output, Contains("tensors differ"));
}

// Changes the last byte of every shard of the model in these checkpoints.
void Damage(const std::string& checkpoints) {
  for (const auto& entry : fs::recursive_directory_iterator(checkpoints)) {
    if (entry.path().extension() != ".safetensors" || entry.path().parent_path().filename() == "optimizer") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char last = static_cast<char>(file.get() ^ 1);
    file.seekp(-1, std::ios::end);
    file.put(last);
  }
}

TEST_CASE("checkpoint: a backup is adopted where no checkpoint verifies any more, and the job ends as it would have",
          "[e2e]") {
  const std::string directory = TempPath("adopted"), backup = TempPath("adopted.backup");
  const auto run = [&] {
    return Run({"run", kJob, "--workers", "1", "--dir", directory}, Settings("60steps", "20steps"));
  };
  REQUIRE(run().code == kExitDone);
  const std::string undisturbed = Run({"checkpoint", "digest", directory}).output;
  fs::copy(directory + "/checkpoints/step-000000020", backup, fs::copy_options::recursive);
  Damage(directory + "/checkpoints");
  const Result lost = run();
  CHECK(lost.code == kExitStorage);
  CHECK_THAT(lost.output, Contains("lockstep checkpoint adopt"));

  const Result adopted = Run({"checkpoint", "adopt", directory, backup});
  INFO(adopted.output);
  REQUIRE(adopted.code == kExitDone);
  CHECK_THAT(adopted.output, Contains("step-000000020 is adopted") && Contains("from which the job goes on"));
  CHECK_THAT(Run({"checkpoint", "adopt", directory, backup}).output, Contains("counts already"));

  REQUIRE(run().code == kExitDone);
  CHECK(Run({"checkpoint", "digest", directory}).output == undisturbed);
}

}  // namespace
}  // namespace lockstep::e2e
