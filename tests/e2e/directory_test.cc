// Damage to a job's directory between runs, copies of it, and what other users may have put there, on real processes.
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/str_replace.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("directory: one flipped digit of the lineage in the newest record is named, and the job goes on", "[e2e]") {
  const std::string directory = CopyOfFinishedJob("lineage");
  const std::string newest = NewestRecord(directory);
  std::string record = Read(newest);
  const size_t digit = record.find("\"lineage\": \"") + 12;
  record[digit] = record[digit] == '0' ? '1' : '0';
  Write(newest, record);

  const Result result = Run({"run", kJob, "--workers", "1", "--dir", directory}, Settings());

  INFO(result.output);
  CHECK(result.code == kExitDone);
  CHECK_THAT(result.output, Contains(newest + " was damaged") && Contains("from step 20"));
  CHECK(Digest(directory) == Digest(FinishedJob()));
  CHECK(fs::is_empty(directory + "/set_aside"));
}

// Evaluates every 10 steps. The weights do not move, so that no evaluation is better than the first one.
Words WithEvaluation(const std::string& duration) {
  return {kInputs,
          kLabels,
          "train.duration=" + duration,
          "train.optimizer.lr=1e-30",
          "eval={every: 10steps, metric: loss}",
          absl::StrCat("data.eval={", absl::StrReplaceAll(kInputs, {{"data.train.inputs=", "inputs: "}}), ", ",
                       absl::StrReplaceAll(kLabels, {{"data.train.labels=", "labels: "}}), "}"),
          "checkpoint={every: 10steps, keep_latest: 1, keep_best: true}"};
}

// The line that names the best checkpoint; empty without one.
std::string BestLine(const std::string& output) {
  const size_t at = output.find("best: loss ");
  return at == std::string::npos ? "" : output.substr(at, output.find('\n', at) - at);
}

TEST_CASE("directory: the best checkpoint that is lost between runs is not named again", "[e2e]") {
  const std::string directory = TempPath("lostbest");
  const Words sets = WithEvaluation("30steps");
  const Words run = {"run", kJob, "--workers", "1", "--dir", directory};
  const Result first = Run(run, sets);
  INFO(first.output);
  REQUIRE(first.code == kExitDone);
  REQUIRE_THAT(BestLine(first.output), Contains("at step 10; checkpoint"));

  for (const bool damaged : {false, true}) {
    CAPTURE(damaged);
    const std::string copy = TempPath("lostbestcopy");
    fs::remove_all(copy);
    fs::copy(directory, copy, fs::copy_options::recursive);
    const std::string best = copy + "/checkpoints/step-000000010";
    if (damaged) {
      std::string bytes = Read(best + "/model.safetensors");
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      Write(best + "/model.safetensors", bytes);
    } else {
      fs::remove_all(best);
    }

    const Result again = Run({"run", kJob, "--workers", "1", "--dir", copy}, sets);

    INFO(again.output);
    CHECK(again.code == kExitDone);
    CHECK_THAT(again.output, Contains("of step 10") && Contains("is lost with its checkpoint"));
    CHECK_THAT(BestLine(again.output), Contains("at step 30; checkpoint"));
    CHECK(Read(copy + "/best") == "step-000000030\n");
    CHECK(fs::exists(best) == false);
  }
}

TEST_CASE("directory: a chief that cannot read the best checkpoint at the end fails, and status says so", "[e2e]") {
  const std::string directory = TempPath("unreadbest");
  Words sets = WithEvaluation("100000steps");
  sets.push_back("checkpoint.when_busy=wait");  // the save of step 20 is not left out
  Watched chief("unreadbest.chief", {"chief", kJob, "--dir", directory, "--expected-workers", "1"}, sets);
  chief.WaitFor("listening on");
  Watched worker("unreadbest.worker",
                 {"worker", "--chief-file", directory + "/chief/address", "--token-file", directory + "/chief/token"});
  chief.WaitFor("saved step 20");
  const std::string manifest = directory + "/checkpoints/step-000000010/manifest.json";
  fs::remove(manifest);
  fs::create_directory(manifest);

  const Result stop = Run({"stop", "--dir", directory});

  INFO(chief.Output());
  CHECK(chief.End() == Ended{kExitStorage, 0});
  CHECK_THAT(chief.Output(), Contains(manifest) && !Contains("done at step"));
  const Result status = Run({"status", "--dir", directory});
  INFO(status.output);
  CHECK_THAT(status.output, Contains("FAILED") && Contains(manifest));
  worker.End();
}

TEST_CASE("directory: a copy of a running job's directory leads nobody to that job", "[e2e]") {
  const std::string directory = TempPath("original");
  Watched first("original", {"run", kJob, "--workers", "1", "--dir", directory}, Settings("100000steps", "50steps"));
  first.WaitFor("saved step");
  const std::string copy = TempPath("copy");
  fs::copy(directory, copy, fs::copy_options::recursive);

  const Result stop = Run({"stop", "--dir", copy});
  CHECK(stop.code != kExitDone);
  CHECK_THAT(stop.output, Contains(copy + "/chief/address") && Contains("a copy"));
  const Result worker = Run({"worker", "--chief-file", copy + "/chief/address", "--token-file", copy + "/chief/token",
                             "--name", "worker-9", "--connect-timeout", "1"});
  CHECK(worker.code == kExitChiefUnreachable);
  CHECK_THAT(worker.output, Contains("a copy"));
  CHECK_THAT(first.Output(), !Contains("worker-9"));

  const Result status = Run({"status", "--dir", directory});
  INFO(status.output);
  CHECK(status.code == kExitDone);
  CHECK(Run({"stop", "--dir", directory}).code == kExitDone);
  CHECK(first.End() == Ended{});
}

TEST_CASE("directory: a chief whose addresses are removed says again where it is, and the run leaves none", "[e2e]") {
  const std::string directory = TempPath("emptied");
  Watched run("emptied", {"run", kJob, "--workers", "2", "--dir", directory}, Settings("100000steps", "50steps"));
  run.WaitFor("saved step");
  const auto addresses_of_runs = [&] {
    int found = 0;
    for (const auto& entry : fs::directory_iterator(directory + "/logs")) {
      found += entry.path().extension() == ".address" ? 1 : 0;
    }
    return found;
  };
  CHECK(addresses_of_runs() == 1);

  fs::remove(directory + "/chief/address");
  for (const auto& entry : fs::directory_iterator(directory + "/logs")) fs::remove_all(entry.path());
  WaitUntil("both addresses are there",
            [&] { return fs::exists(directory + "/chief/address") && addresses_of_runs() == 1; });

  CHECK(Run({"stop", "--dir", directory}).code == kExitDone);
  CHECK(run.End() == Ended{});
  CHECK(addresses_of_runs() == 0);
}

TEST_CASE("directory: what a link would make the job write to is left as it is", "[e2e]") {
  const std::string victim = TempPath("victim");
  for (const std::string link : {"chief/lock", "logs/worker-0.log"}) {
    CAPTURE(link);
    const std::string directory = CopyOfFinishedJob("linked");
    Write(victim, "kept");
    fs::remove(directory + "/" + link);
    fs::create_symlink(victim, directory + "/" + link);

    const Result check = Run({"check", kJob, "--dir", directory}, Settings("30steps"));
    const Result result = Run({"run", kJob, "--workers", "1", "--dir", directory}, Settings("30steps"));

    INFO(check.output << result.output);
    CHECK(Read(victim) == "kept");
    const std::string cause = directory + "/" + link + " is a symbolic link, and is not written to";
    for (const Result& refused : {check, result}) {
      CHECK(refused.code == kExitBadJob);
      CHECK_THAT(refused.output, Contains(cause));
    }
  }
}

// Check and a chief refuse the directory in the same words.
void CheckRefused(const std::string& directory, int code, const std::vector<std::string>& words) {
  for (const std::string command : {"check", "chief"}) {
    const Result result = Run({command, kJob, "--dir", directory}, Settings());
    INFO(command << ": " << result.output);
    CHECK(result.code == code);
    for (const std::string& word : words) CHECK_THAT(result.output, Contains(word));
  }
}

TEST_CASE("directory: a token that others may read is refused with 77, one that is damaged with 74", "[e2e]") {
  const std::string directory = CopyOfFinishedJob("open");
  const std::string token = directory + "/chief/token";
  REQUIRE(chmod(token.c_str(), 0644) == 0);
  CheckRefused(directory, kExitBadToken, {token, "chmod 600"});

  REQUIRE(chmod(token.c_str(), 0600) == 0);
  Write(token, "short\n");
  CheckRefused(directory, kExitStorage, {token, "holds no token", "Remove it"});
}

TEST_CASE("directory: a token that another user put there is refused with 77", "[e2e]") {
  if (geteuid() != 0) {
    std::cout << "SKIPPED: files of another user need the right to give files away\n";
    return;
  }
  const std::string directory = CopyOfFinishedJob("planted");
  const std::string token = directory + "/chief/token";
  REQUIRE(chown(token.c_str(), 65534, 65534) == 0);
  CheckRefused(directory, kExitBadToken, {token, "65534", "Remove it"});
}

}  // namespace
}  // namespace lockstep::e2e
