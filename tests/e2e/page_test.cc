// A job's page, metrics and health over HTTP, from a running chief, after its death, and of the directory alone.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/http_client.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

// The port behind `word` in the newest line of a log that has it.
int PortIn(const std::string& log, const std::string& word) {
  const size_t at = log.rfind(word);
  return at == std::string::npos ? 0 : std::atoi(log.c_str() + at + word.size());
}

int PageOf(const LocalJob& job) { return PortIn(job.LogOf("chief"), "page: http://127.0.0.1:"); }

json Api(int port, const std::string& path) {
  const HttpAnswer answer = HttpGet(port, "/api/" + path);
  CAPTURE(path, answer.status, answer.body);
  REQUIRE(answer.status == 200);
  return json::parse(answer.body);
}

std::set<std::string> KindsOf(const json& timeline) {
  std::set<std::string> kinds;
  for (const json& entry : timeline["entries"]) kinds.insert(entry["kind"].get<std::string>());
  return kinds;
}

// A value of a metric without labels.
double Metric(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  REQUIRE(at != std::string::npos);
  return std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

TEST_CASE("page: a chief shows its job, goes on with it after it was killed, and the directory shows it at the end",
          "[e2e]") {
  LocalJob job("page", kJob,
               {kInputs, kLabels, "data.eval.inputs=/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz",
                "data.eval.labels=/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz", "eval.every=1500steps",
                "train.duration=3000steps", "checkpoint.every=200steps"});
  job.StartChief(2);
  job.StartWorker(0, {"--http", "127.0.0.1:0"});
  job.StartWorker(1);
  job.WaitForStep(250);
  const int port = PageOf(job);
  REQUIRE(port > 0);

  const HttpAnswer page = HttpGet(port, "/");
  CHECK(page.status == 200);
  CHECK_THAT(page.head, Contains("text/html") && Contains("Content-Security-Policy: default-src 'none'"));
  CHECK_THAT(page.body, Contains("<script"));
  CHECK(HttpGet(port, "/", "", "evil.example").status == 403);
  CHECK(HttpGet(port, "/healthz", "", "evil.example").status == 200);
  CHECK(HttpGet(port, "/readyz").status == 200);
  CHECK(HttpGet(port, "/api/../chief/token").status == 404);

  json state = Api(port, "job");
  CHECK(state["live"] == true);
  CHECK(state["end_step"] == 3000);
  CHECK(state["step"] >= 250);
  CHECK(state["workers"].size() == 2);
  CHECK(state["global_batch"].is_number());
  CHECK(state["goodput"]["stepping"] > 0);
  const HttpAnswer metrics = HttpGet(port, "/metrics");
  CHECK(metrics.status == 200);
  CHECK(Metric(metrics.body, "lockstep_job_step") >= 250);
  const int worker_port = PortIn(job.LogOf("worker-0"), "metrics: http://127.0.0.1:");
  REQUIRE(worker_port > 0);
  CHECK(HttpGet(worker_port, "/readyz").status == 200);
  CHECK(Metric(HttpGet(worker_port, "/metrics").body, "lockstep_replica_steps_total") > 0);

  job.Kill("worker-1");
  job.StartWorker(1);
  const uint64_t before = job.Status()->step();
  job.WaitForStep(before + 50);
  WaitUntil("the loss is told", [&] { return job.Stats().job().losses() == 1; });
  job.Kill("chief");
  job.StartChief(2);
  WaitUntil("the page of the next chief",
            [&] { return PageOf(job) > 0 && HttpGet(PageOf(job), "/healthz").status == 200; });
  CHECK(job.WaitForEnd("chief") == Ended{kExitDone, 0});

  Watched view("page_view", {"view", job.directory()});
  view.WaitFor("Ctrl-C");
  const int viewed = PortIn(view.Output(), "page: http://127.0.0.1:");
  state = Api(viewed, "job");
  CHECK(state["live"] == false);
  CHECK(state["phase"] == "DONE");
  CHECK(state["step"] == 3000);
  CHECK(state["exit_code"] == 0);
  CHECK(state["goodput"]["no_chief"] > 0);
  CHECK(state["totals"]["losses"] >= 1);
  CHECK(state["checkpoints"][0]["step"] == 3000);
  CHECK_FALSE(state["evaluation"]["values"].empty());

  // No step's loss counts twice. A killed chief loses what it had not written (docs/formats/events.md).
  const json loss = Api(viewed, "series/loss?points=5000");
  CHECK(loss["step"].front() == 1);
  CHECK(loss["step"].back() == 3000);
  CHECK(loss["total"] == loss["step"].size());
  CHECK(std::is_sorted(loss["step"].begin(), loss["step"].end(), std::less_equal<json>()));
  const json timeline = Api(viewed, "timeline");
  for (const char* kind :
       {"chief_started", "phase", "generation", "joined", "lost", "save_began", "saved", "evaluated", "chief_ended"}) {
    CAPTURE(kind);
    CHECK(KindsOf(timeline).count(kind) == 1);
  }
  CHECK_FALSE(Api(viewed, "logs")["lines"].empty());
  view.process().Signal(SIGINT);
  CHECK(view.End() == Ended{kExitDone, 0});
}

TEST_CASE("page: beyond loopback a read credential opens it, and what can do more is refused", "[e2e]") {
  LocalJob job("page_token", kJob, {kInputs, kLabels, "train.duration=100000steps", "observe.http=0.0.0.0:0"});
  job.StartChief(1);
  WaitUntil("the page", [&] { return PortIn(job.LogOf("chief"), "page: http://0.0.0.0:") > 0; });
  const int port = PortIn(job.LogOf("chief"), "page: http://0.0.0.0:");
  const auto credential = [&](const std::string& role) {
    const Result token = Run({"token", "--dir", job.directory(), "--role", role});
    REQUIRE(token.code == kExitDone);
    return token.output.substr(0, token.output.find_last_not_of(" \n") + 1);
  };
  const auto with = [](const std::string& shown) { return absl::StrCat("Authorization: Bearer ", shown, "\r\n"); };

  CHECK(HttpGet(port, "/healthz").status == 200);
  for (const char* path : {"/", "/api/job", "/metrics", "/page.js"}) CHECK(HttpGet(port, path).status == 401);
  CHECK(HttpGet(port, "/api/job", with(credential("read"))).status == 200);
  CHECK(HttpGet(port, "/metrics", with(credential("read"))).status == 200);
  for (const char* role : {"join", "admin"}) {
    const HttpAnswer refused = HttpGet(port, "/metrics", with(credential(role)));
    CHECK(refused.status == 401);
    CHECK_THAT(refused.body, Contains("--role read"));
  }
  const std::string token = Read(job.directory() + "/chief/token");
  CHECK(HttpGet(port, "/metrics", with(token.substr(0, token.find('\n')))).status == 401);
  const HttpAnswer link = HttpGet(port, "/?token=" + credential("read"));
  CHECK(link.status == 303);
  CHECK_THAT(link.head, Contains("Location: ./\r\n") && Contains("HttpOnly"));
}

TEST_CASE("page: an address that cannot be had costs a warning, and the job goes on", "[e2e]") {
  const std::string taken = TempPath("page_taken");
  const Result result =
      Run({"run", kJob, "--workers", "1", "--dir", taken, "--set", "observe.http=192.0.2.1:80"}, Settings());
  CHECK(result.code == kExitDone);
  CHECK_THAT(result.output, Contains("no page and no metrics are served: observe.http: "));
}

}  // namespace
}  // namespace lockstep::e2e
