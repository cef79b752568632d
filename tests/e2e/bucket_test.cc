// Jobs whose directory is a bucket, as real processes against an S3 server on the loopback.
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/object_store/bucket_storage.h"
#include "common/object_store/fake_s3.h"
#include "common/object_store/test_http_server.h"
#include "common/status/exit_code.h"
#include "common/storage/files.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/shown_events.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;

// A server with one bucket, which the processes that are started from now on find in their environment.
struct Server {
  Server()
      : http([this](const TestHttpServer::Request& request) {
          HttpClientRequest sent;
          sent.method = request.method;
          sent.url = absl::StrCat("http://", request.headers.at("host"), request.target);
          sent.headers = request.headers;
          sent.body = request.body;
          return fake.Send(sent).value_or(HttpAnswer());
        }) {
    fake.page_keys = 50;
    const std::vector<std::pair<std::string, std::string>> variables = {{"AWS_ENDPOINT_URL", http.url()},
                                                                        {"AWS_ACCESS_KEY_ID", fake.keys.access_key},
                                                                        {"AWS_SECRET_ACCESS_KEY", fake.keys.secret_key},
                                                                        {"AWS_REGION", fake.region},
                                                                        {"AWS_EC2_METADATA_DISABLED", "true"},
                                                                        {"AWS_CONFIG_FILE", "/dev/null"},
                                                                        {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"}};
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    for (const char* name : {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"}) unsetenv(name);
  }
  std::string Url(const std::string& job) const { return absl::StrCat("s3://", fake.bucket, "/runs/", job); }

  FakeS3 fake;
  TestHttpServer http;
};

const Words& BucketSets() {
  static const Words sets = Settings("1000steps", "100steps");
  return sets;
}

const std::string& UndisturbedInBucket() {
  static const std::string digest = [] {
    const std::string directory = TempPath("bucket.undisturbed");
    const Result result = Run({"run", kJob, "--workers", "1", "--dir", directory}, BucketSets());
    INFO(result.output);
    REQUIRE(result.code == kExitDone);
    return Digest(directory);
  }();
  return digest;
}

// Contents by name.
std::map<std::string, std::string> EventsOf(Server& server, const std::string& job) {
  BucketStorage bucket(&server.fake.objects());
  const std::string folder = absl::StrCat("runs/", job, "/events");
  const std::vector<DirectoryEntry> entries = bucket.List(folder).value();
  std::map<std::string, std::string> files;
  for (const DirectoryEntry& entry : entries) {
    files[entry.name] = ReadWholeFile(bucket, JoinPath(folder, entry.name), 64 << 20).value();
  }
  return files;
}

// A chief and two workers that know of the job no more than its place.
struct Processes {
  Processes(const std::string& name, const std::string& url)
      : chief(name + ".chief", {"chief", kJob, "--dir", url, "--expected-workers", "2"}, BucketSets()) {
    for (int i = 0; i < 2; ++i) {
      const std::string worker = absl::StrCat("worker-", i);
      workers.push_back(
          std::make_unique<Watched>(absl::StrCat(name, ".", worker), Words{"worker", "--job", url, "--name", worker}));
    }
  }
  void KillAll() {
    for (auto& worker : workers) worker->process().Signal(SIGKILL);
    chief.process().Signal(SIGKILL);
    for (auto& worker : workers) CHECK(worker->End() == Ended{0, SIGKILL});
    CHECK(chief.End() == Ended{0, SIGKILL});
  }

  Watched chief;
  std::vector<std::unique_ptr<Watched>> workers;
};

TEST_CASE("bucket: all processes of a job are killed, and it goes on to the weights of an undisturbed run", "[e2e]") {
  const std::string& expected = UndisturbedInBucket();
  Server server;
  const std::string url = server.Url("killed");
  {
    Processes first("bucket.first", url);
    first.chief.WaitFor("saved step");
    first.KillAll();
  }
  const Result status = Run({"status", "--dir", url});
  CHECK_THAT(status.output, Contains("NOT_RUNNING") && Contains("goes on from step"));

  Processes second("bucket.second", url);

  CHECK(second.chief.End() == Ended{});
  INFO(second.chief.Output());
  for (auto& worker : second.workers) CHECK(worker->End() == Ended{});
  CHECK_THAT(second.chief.Output(), Contains("term 2, listening on") && Contains("done at step 1000"));
  CHECK_FALSE(second.chief.Output().find("from step 0") != std::string::npos);
  CHECK(Digest(url) == expected);
  const Result verified = Run({"checkpoint", "verify", url});
  CHECK(verified.code == kExitDone);
  CHECK_THAT(verified.output, Contains("step-000001000  ok"));
  CHECK_THAT(Run({"checkpoint", "ls", url}).output, Contains("step-000001000  "));
  CHECK_THAT(Run({"status", "--dir", url}).output, Contains("DONE  step 1000"));
  CHECK_THAT(Run({"stats", url}).output, Contains("samples/s"));
  CHECK_THAT(Run({"metagraph", "diff", url, url}).output, Contains("the same"));

  const Shown shown = ShowEvents(EventsOf(server, "killed"));
  CHECK(shown.graphs == 1);
  CHECK(shown.metagraphs == 1);
  CHECK(shown.starts.size() == 2);
  CHECK(shown.curves.at("loss").rbegin()->first == 1000);
  CHECK(shown.Last("cluster/chief_starts") == 2);
  CHECK(shown.Last("samples_per_second") > 0);
}

TEST_CASE("bucket: `lockstep run` is killed with its processes, and the same command goes on", "[e2e]") {
  const std::string& expected = UndisturbedInBucket();
  Server server;
  const std::string url = server.Url("run");
  const Words words = {"run", kJob, "--workers", "2", "--dir", url, "--logs", TempPath("bucket.logs")};
  {
    Watched run("bucket.run", words, BucketSets());
    run.WaitFor("saved step");
    run.process().Signal(SIGKILL);
    CHECK(run.End() == Ended{0, SIGKILL});
  }

  const Result again = Run(words, BucketSets());

  INFO(again.output);
  CHECK(again.code == kExitDone);
  CHECK_THAT(again.output, Contains("done at step 1000"));
  CHECK(Digest(url) == expected);
}

TEST_CASE("bucket: checkpoints are pinned, removed, adopted, compared, exported, and begun from", "[e2e]") {
  Server server;
  const std::string url = server.Url("source"), file = TempPath("bucket.safetensors");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", url, "--logs", TempPath("bucket.logs")}, Settings()).code ==
          kExitDone);

  CHECK(Run({"checkpoint", "pin", url, "--step", "0"}).code == kExitDone);
  CHECK_THAT(Run({"checkpoint", "ls", url, "--step", "0"}).output, Contains("  pinned"));
  CHECK(Run({"checkpoint", "rm", url, "--step", "10"}).code == kExitDone);
  CHECK(Run({"checkpoint", "verify", url, "--step", "10"}).code == kExitStorage);
  const Result adopted = Run({"checkpoint", "adopt", url, FinishedJob() + "/checkpoints/step-000000010"});
  CHECK_THAT(adopted.output, Contains("not in the history of"));
  CHECK(adopted.code != kExitDone);
  CHECK_THAT(Run({"checkpoint", "diff", url, url, "--step", "0"}).output, Contains("tensors differ"));
  CHECK_THAT(Run({"checkpoint", "diff", url, FinishedJob()}).output, Contains("hold the same state, bit for bit"));
  REQUIRE(Run({"checkpoint", "export", url, "-o", file}).code == kExitDone);

  // One step from the weights there, and from the file.
  std::vector<std::string> digests;
  for (const std::string& from : {url, file}) {
    Words sets = Settings("1steps");
    sets.push_back("model.from=" + from);
    const std::string directory = TempPath(absl::StrCat("bucket.from", digests.size()));
    const Result result = Run({"run", kJob, "--workers", "1", "--dir", directory}, sets);
    INFO(result.output);
    REQUIRE(result.code == kExitDone);
    digests.push_back(Digest(directory));
  }
  CHECK(digests[0] == digests[1]);
}

TEST_CASE("bucket: a standby takes the job over when its chief is killed", "[e2e]") {
  const std::string& expected = UndisturbedInBucket();
  Server server;
  const std::string url = server.Url("standby");
  Processes job("bucket.followed", url);
  Watched standby("bucket.standby", {"chief", kJob, "--dir", url, "--standby"}, BucketSets());
  standby.WaitFor("the chief of term 1 has the job");
  job.chief.WaitFor("saved step");

  job.chief.process().Signal(SIGKILL);

  standby.WaitFor("has been silent for 15s");
  CHECK(standby.End() == Ended{});
  INFO(standby.Output());
  for (auto& worker : job.workers) CHECK(worker->End() == Ended{});
  CHECK(Digest(url) == expected);
}

}  // namespace
}  // namespace lockstep::e2e
