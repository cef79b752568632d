#include "chief/watch/page_api.h"

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "chief/events/event_record.h"
#include "chief/stats/line_files.h"
#include "chief/timeline/timeline_recorder.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

absl::Time At(int64_t ms) { return absl::FromUnixMillis(ms); }

// A job in memory, and its page's answers.
class WatchedJob {
 public:
  WatchedJob() {
    for (const char* folder : {layout::kEvents, kTimelineFolder, kChiefLogFolder, layout::kSamples}) {
      REQUIRE(storage().CreateDirectories(folder).ok());
    }
    present_.status.set_job("mnist");
    present_.status.set_phase("RUNNING");
    present_.status.set_step(5);
    present_.status.set_loss(0.5);
    present_.status.set_end_step(10);
    present_.live = true;
  }

  Storage& storage() { return place_.storage(); }
  PresentJob& present() { return present_; }
  void Write(const std::string& path, const std::string& bytes) {
    REQUIRE(WriteNewFile(storage(), path, bytes, Access::kShared).ok());
  }
  HttpResponse Get(const std::string& target) {
    const HttpRequest request = ParseTarget(target).value();
    return api_.Answer(request.path.substr(1), request);
  }
  nlohmann::json Json(const std::string& target) {
    const HttpResponse response = Get(target);
    CAPTURE(target, response.body);
    REQUIRE(response.status == 200);
    CHECK(response.content_type == "application/json");
    return nlohmann::json::parse(response.body);
  }

 private:
  JobPlace place_{std::make_unique<MemoryStorage>()};
  PresentJob present_;
  PageApi api_{{.directory = "runs/mnist", .place = &place_, .present = [this] { return present_; }}};
};

TEST_CASE("page: the job's state has what the chief says and what workers did, those that are gone too", "[watch]") {
  WatchedJob job;
  job.present().status.set_eta_seconds(std::numeric_limits<double>::infinity());
  job.present().status.set_loss(std::numeric_limits<double>::quiet_NaN());
  proto::WorkerStatus& member = *job.present().status.add_workers();
  member.set_name("worker-1");
  member.set_state("member");
  member.set_rank(0);
  for (const char* name : {"worker-0", "worker-1"}) {
    WorkerStats& stats = *job.present().stats.add_workers();
    stats.set_worker(name);
    stats.set_step_seconds(10);
    stats.set_compute_seconds(8);
    stats.set_losses(2);
  }
  HostStats& host = *job.present().stats.add_hosts();
  host.set_host("b");
  host.set_excluded(true);
  host.set_cause("<script>alert(1)</script>");
  job.present().stats.mutable_job()->mutable_goodput()->set_stepping(61);

  const nlohmann::json state = job.Json("/job");

  CHECK(state["job"] == "mnist");
  CHECK(state["directory"] == "runs/mnist");
  CHECK(state["end_step"] == 10);
  CHECK(state["loss"].is_null());
  CHECK_FALSE(state.contains("eta_seconds"));
  CHECK_FALSE(state.contains("evaluation"));
  CHECK(state["goodput"]["stepping"] == 61);
  REQUIRE(state["workers"].size() == 2);
  CHECK(state["workers"][0]["state"] == "gone");
  CHECK(state["workers"][1]["state"] == "member");
  CHECK(state["workers"][1]["compute_share"] == 0.8);
  CHECK(state["workers"][1]["losses"] == 2);
  CHECK_THAT(state["warnings"][0].get<std::string>(), Contains("host b is left out"));
}

TEST_CASE("page: curves, timeline, samples and log come from the job's files, and what is new is read", "[watch]") {
  WatchedJob job;
  std::string events = VersionRecord(At(1)) + StartRecord(At(1), 1);
  for (int64_t step = 1; step <= 100; ++step) events += ScalarsRecord(At(1000 + step), step, {{"loss", 1.0 / step}});
  events += ScalarsRecord(At(2000), 100, {{"evaluation/accuracy", 0.5}, {"worker/a b/step_ms", 3}});
  job.Write("events/events.out.tfevents.1", events);
  TimelineEntry entry;
  for (int64_t ms : {1000, 2000, 3000}) {
    entry.set_at_ms(ms);
    entry.set_kind("lost");
    entry.set_worker("worker-1");
    LineFiles(job.storage(), kTimelineFolder, ms / 1000, {}).Append(JsonLine(entry)).IgnoreError();
  }
  job.Write("samples/step-000000100.txt", "To be");
  job.Write("samples/step-000000200.txt", "Or not \xff");
  job.Write("logs/chief/term-000001-000001.jsonl",
            "{\"time\":\"2026-11-27T12:00:01.123Z\",\"level\":\"info\",\"part\":\"chief\",\"message\":\"saved\"}\n"
            "{\"time\":\"2026-11-27T12:00:02.123Z\",\"level\":\"warn\",\"part\":\"chief\",\"step\":7,"
            "\"message\":\"slow\"}\n");

  CHECK(job.Json("/series")["series"].size() == 3);
  const nlohmann::json loss = job.Json("/series/loss?points=10");
  CHECK(loss["step"].size() == 10);
  CHECK(loss["step"].back() == 100);
  CHECK(loss["low"].size() == 10);
  CHECK(loss["total"] == 100);
  CHECK_FALSE(job.Json("/series/loss").contains("low"));
  CHECK(job.Json("/series/loss?from=91&to=95")["step"] == nlohmann::json({91, 92, 93, 94, 95}));
  CHECK(job.Json("/series/worker%2Fa%20b%2Fstep_ms")["value"] == nlohmann::json({3.0}));
  CHECK(job.Json("/timeline")["entries"].size() == 3);
  CHECK(job.Json("/timeline?from=1500&to=2500")["entries"][0]["at_ms"] == 2000);
  CHECK(job.Json("/samples")["samples"][0]["step"] == 200);
  CHECK(job.Json("/logs")["lines"].size() == 2);
  const nlohmann::json warnings = job.Json("/logs?level=warn");
  REQUIRE(warnings["lines"].size() == 1);
  CHECK(warnings["lines"][0]["text"] == "slow");
  CHECK(warnings["lines"][0]["step"] == 7);
  CHECK(job.Json("/logs?lines=1")["lines"][0]["text"] == "slow");
  CHECK(job.Json("/job")["evaluation"]["values"]["accuracy"] == 0.5);
}

TEST_CASE("page: what is not there is 404, and numbers that are none are passed over", "[watch]") {
  WatchedJob job;
  for (const char* target : {"/", "/nothing", "/series/", "/series/loss", "/job/x", "/../job"}) {
    CAPTURE(target);
    CHECK(job.Get(target).status == 404);
  }
  CHECK(job.Json("/timeline?from=x&to=-5")["entries"].empty());
  CHECK(job.Json("/logs?lines=-1&level=loud")["lines"].empty());
}

TEST_CASE("page: a chief that does not answer is said, and its record is shown all the same", "[watch]") {
  JobPlace place(std::make_unique<MemoryStorage>());
  PageApi api({.directory = "runs/mnist", .place = &place, .present = []() -> absl::StatusOr<PresentJob> {
                 return absl::UnavailableError("too busy");
               }});
  const HttpResponse response = api.Answer("job", HttpRequest());
  CHECK(response.status == 503);
  CHECK(nlohmann::json::parse(response.body)["error"] == "too busy");
  CHECK(api.Answer("series", HttpRequest()).status == 200);
}

}  // namespace
}  // namespace lockstep::chief
