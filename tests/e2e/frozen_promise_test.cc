// A job of which a part is never trained, on real processes: that part is written twice, and neither sent nor written
// after that, whoever is killed and however many workers there are.
#include <signal.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

// 1.5 MiB of 1.6 are frozen: the first layer.
Words FrozenSets() {
  Words sets = Settings("400steps", "20steps");
  sets.insert(sets.end(), {"model.builtin.name=mlp", "model.builtin.hidden=[512]", "model.trainable=fc2*",
                           "checkpoint.keep_latest=4"});
  return sets;
}

// Step → the file, by its number, that holds the first layer.
std::map<std::string, ino_t> FrozenFiles(const std::string& directory) {
  std::map<std::string, ino_t> files;
  for (const auto& checkpoint : fs::directory_iterator(directory + "/checkpoints")) {
    for (const auto& file : fs::directory_iterator(checkpoint.path())) {
      if (file.path().extension() != ".safetensors" || file.file_size() < (1 << 20)) continue;
      struct stat info = {};
      REQUIRE(stat(file.path().c_str(), &info) == 0);
      files[checkpoint.path().filename()] = info.st_ino;
    }
  }
  return files;
}

std::string FrozenDigest() {
  static const std::string digest = [] {
    const std::string directory = TempPath("frozen_undisturbed");
    REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", directory}, FrozenSets()).code == kExitDone);
    return Digest(directory);
  }();
  return digest;
}

TEST_CASE("frozen share: what is never trained lies in two files, however many checkpoints there are", "[e2e]") {
  const std::string directory = TempPath("frozen");
  const Result result = Run({"run", kJob, "--workers", "2", "--dir", directory}, FrozenSets());
  INFO(result.output);
  REQUIRE(result.code == kExitDone);

  const auto files = FrozenFiles(directory);
  CHECK(files.size() == 4);
  std::set<ino_t> different;
  for (const auto& [step, number] : files) different.insert(number);
  CHECK(different.size() == 2);
  CHECK(Run({"checkpoint", "verify", directory}).code == kExitDone);
  CHECK(Digest(directory) == FrozenDigest());
  // What was sent is less than the first layer twice over, after 20 saves.
  const std::string stats = Read(directory + "/stats/worker_stats.json");
  uint64_t sent = 0;
  for (size_t at = stats.find("\"bytes_uploaded\""); at != std::string::npos;
       at = stats.find("\"bytes_uploaded\"", at + 1)) {
    sent += std::stoull(stats.substr(stats.find_first_of("0123456789", at)));
  }
  CHECK(sent > 0);
  CHECK(sent < 2 * 512 * 784 * 4);
}

TEST_CASE("frozen share: kills of everybody, and other numbers of workers, change no bit", "[e2e]") {
  const std::string directory = TempPath("frozen_killed");
  for (int life = 0; life < 3; ++life) {
    const std::string workers = absl::StrCat(1 + life);
    Watched run(absl::StrCat("life", life), {"run", kJob, "--workers", workers, "--dir", directory}, FrozenSets());
    run.WaitFor("saved step ");
    run.process().Signal(SIGKILL);
    run.End();
  }
  const Result result = Run({"run", kJob, "--workers", "2", "--dir", directory}, FrozenSets());
  INFO(result.output);
  CHECK(result.code == kExitDone);
  CHECK(Digest(directory) == FrozenDigest());
  CHECK(Run({"checkpoint", "verify", directory}).code == kExitDone);
}

TEST_CASE("frozen share: a copy of one checkpoint is a whole one", "[e2e]") {
  const std::string directory = TempPath("frozen_copied");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", directory}, FrozenSets()).code == kExitDone);
  const std::string copy = TempPath("frozen_copy");
  fs::copy(directory + "/checkpoints/step-000000400", copy, fs::copy_options::recursive);
  Words sets = FrozenSets();
  sets.push_back("model.from=" + copy);
  sets.push_back("train.duration=1steps");
  const std::string other = TempPath("frozen_other");
  const Result result = Run({"run", kJob, "--workers", "1", "--dir", other}, sets);
  INFO(result.output);
  CHECK(result.code == kExitDone);
}

}  // namespace
}  // namespace lockstep::e2e
