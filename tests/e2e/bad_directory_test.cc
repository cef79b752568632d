// What can be wrong with a job's directory, on real processes: it is of another job, in use, or damaged. One clear
// message, the right exit code, and the newest good checkpoint stays as it is.
#include <signal.h>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "chief/term/job_log.h"
#include "common/status/exit_code.h"
#include "common/storage/local/local_storage.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("bad input: a second chief is told the pid of the first, which goes on unharmed", "[e2e]") {
  const std::string directory = TempPath("second");
  Watched first("first", {"run", kJob, "--workers", "1", "--dir", directory}, Settings("400steps", "100steps"));
  first.WaitFor("saved step");

  const Result second = Run({"chief", kJob, "--dir", directory}, Settings("400steps", "100steps"));
  CHECK(second.code == kExitBadJob);
  CHECK_THAT(second.output, Contains("pid") && Contains(directory) && Contains("lockstep stop --dir"));

  // The workers of a second run follow its own chief, which never comes to be.
  const Result run = Run({"run", kJob, "--workers", "1", "--dir", directory}, Settings("400steps", "100steps"));
  CHECK(run.code == kExitBadJob);

  CHECK(first.End() == Ended{});
  CHECK_THAT(first.Output(), Contains("done at step 400") && !Contains("starting it again"));
  CHECK_THAT(first.Output(), !Contains("asks for the name") && !Contains("its session ended"));
}

TEST_CASE("bad input: an idle chief whose directory a newer one took ends with 76", "[e2e]") {
  const std::string directory = TempPath("fenced");
  Watched chief("fenced", {"chief", kJob, "--dir", directory}, Settings("400steps", "100steps"));
  chief.WaitFor("listening on");

  // What a newer chief of another machine does: the next term is claimed, older staging directories are moved away.
  const auto storage = LocalStorage::Open(directory).value();
  chief::JobLog log(*storage);
  REQUIRE(log.Read().ok());
  REQUIRE(log.Change("term 2 claimed", [](CommitRecord& record) { record.set_term(2); }).ok());
  fs::remove_all(directory + "/staging/term-000001");

  CHECK(chief.End() == Ended{kExitFenced, 0});
}

TEST_CASE("bad input: a directory of another job, or of this job with other bits, is refused and kept", "[e2e]") {
  const std::string directory = CopyOfFinishedJob("other");
  const std::vector<BadSetting> cases = {
      {"name=other", kExitBadJob, "other", "--dir"},
      {"train.optimizer.lr=0.06", kExitBadJob, "train.optimizer.lr: 0.05 -> 0.06", "--dir"},
      {"train.seed=7", kExitBadJob, "train.seed: 42 -> 7", "--dir"},
      {"model.builtin.classes=11", kExitBadJob, "model.builtin.classes: 10 -> 11", "--dir"},
  };
  for (const BadSetting& bad : cases) {
    CAPTURE(bad.set);
    Words sets = Settings();
    sets.push_back(bad.set);
    const Result result = Run({"chief", kJob, "--dir", directory}, sets);
    CHECK(result.code == bad.code);
    CHECK_THAT(result.output, Contains(bad.place) && Contains(bad.remedy));
  }
  CHECK(Digest(directory) == Digest(FinishedJob()));
  CHECK(fs::is_empty(directory + "/set_aside"));
}

TEST_CASE("bad input: settings that do not change bits may change, and the job goes on", "[e2e]") {
  const std::string directory = CopyOfFinishedJob("allowed");
  const Result result =
      Run({"run", kJob, "--workers", "2", "--dir", directory},
          {kInputs, kLabels, "train.duration=30steps", "checkpoint.every=15steps", "checkpoint.keep_latest=5",
           "cluster.workers=1:3", "observe.log.format=json", "failure.max_failures=9"});
  INFO(result.output);
  CHECK(result.code == kExitDone);
  CHECK_THAT(result.output,
             Contains("from step 20") && Contains("train.duration: 20steps -> 30steps") && Contains("done at step 30"));
  CHECK_THAT(result.output, Contains("{\"time\":\"") && Contains("\",\"level\":\"info\",\"part\":\"chief\""));
  CHECK_THAT(Read(directory + "/logs/worker-0.log"),
             Contains("\",\"level\":\"info\",\"part\":\"worker\",\"worker\":\"worker-0\""));
  CHECK(Run({"checkpoint", "digest", directory, "--step", "20"}).output == Digest(FinishedJob()));
}

// Starts a chief on `directory`, lets it choose a checkpoint, and ends it.
std::string ChosenBy(const std::string& directory) {
  Watched chief("chooser", {"chief", kJob, "--dir", directory}, Settings());
  chief.WaitFor("listening on");
  chief.process().Signal(SIGKILL);
  chief.End();
  return chief.Output();
}

TEST_CASE("bad input: a damaged checkpoint is set aside with a message, and the newest that verifies is used",
          "[e2e]") {
  const std::string before = Run({"checkpoint", "digest", FinishedJob(), "--step", "10"}).output;
  for (const std::string file :
       {"manifest.json", "model.safetensors", "optimizer/optimizer.safetensors", "job.yaml", "worker_stats.json"}) {
    for (const bool truncated : {false, true}) {
      if (truncated && file != "manifest.json" && file != "model.safetensors") continue;
      CAPTURE(file, truncated);
      const std::string directory = CopyOfFinishedJob("damaged");
      const std::string path = absl::StrCat(directory, "/checkpoints/step-000000020/", file);
      std::string bytes = Read(path);
      REQUIRE(bytes.size() > 8);
      if (truncated) {
        bytes.resize(bytes.size() / 2);
      } else {
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      }
      Write(path, bytes);

      const Result verify = Run({"checkpoint", "verify", directory});
      CHECK(verify.code == kExitStorage);
      CHECK_THAT(verify.output, Contains("step-000000020  BAD") && Contains("step-000000010  ok"));

      const std::string output = ChosenBy(directory);
      CHECK_THAT(output, Contains("set aside step-000000020") && Contains("from step 10"));
      CHECK(Digest(directory) == before);
      CHECK(std::distance(fs::directory_iterator(directory + "/set_aside"), fs::directory_iterator()) == 1);
    }
  }
}

TEST_CASE("bad input: one checkpoint is marked as the best, whichever is asked for and damaged", "[e2e]") {
  const std::string directory = TempPath("best");
  const Result run =
      Run({"run", kJob, "--workers", "1", "--dir", directory},
          {kInputs, kLabels, "train.duration=30steps", "eval={every: 10steps, metric: loss}",
           absl::StrCat("data.eval={", absl::StrReplaceAll(kInputs, {{"data.train.inputs=", "inputs: "}}), ", ",
                        absl::StrReplaceAll(kLabels, {{"data.train.labels=", "labels: "}}), "}"),
           "checkpoint={every: 10steps, keep_latest: 5, keep_best: true}"});
  INFO(run.output);
  REQUIRE(run.code == kExitDone);
  const auto marked = [&](const Words& more) {
    Words words = {"checkpoint", "ls", directory};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<std::string> steps;
    for (const absl::string_view line : absl::StrSplit(Run(words).output, '\n')) {
      if (absl::StrContains(line, "(best)")) steps.emplace_back(line.substr(0, line.find(' ')));
    }
    return steps;
  };

  const std::vector<std::string> best = marked({});
  REQUIRE(best.size() == 1);
  for (const char* step : {"10", "20", "30"}) {
    CAPTURE(step);
    const bool is_best = absl::EndsWith(best[0], step);
    CHECK(marked({"--step", step}).size() == (is_best ? 1 : 0));
  }
  Write(directory + "/checkpoints/step-000000030/manifest.json", "{");
  CHECK(marked({}).size() == 1);
}

TEST_CASE("bad input: when no checkpoint verifies the job stops with 74 and never starts from random weights",
          "[e2e]") {
  const std::string directory = CopyOfFinishedJob("none");
  for (const auto& checkpoint : fs::directory_iterator(directory + "/checkpoints")) {
    const std::string path = checkpoint.path().string() + "/model.safetensors";
    std::string bytes = Read(path);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    Write(path, bytes);
  }

  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result result = Run({"chief", kJob, "--dir", directory}, Settings());
    CHECK(result.code == kExitStorage);
    CHECK_THAT(result.output, Contains("no checkpoint in") && Contains("another --dir") && Contains("random weights"));
    CHECK(fs::is_empty(directory + "/checkpoints"));
  }
  CHECK(std::distance(fs::directory_iterator(directory + "/set_aside"), fs::directory_iterator()) == 3);
}

}  // namespace
}  // namespace lockstep::e2e
