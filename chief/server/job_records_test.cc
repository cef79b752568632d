#include "chief/server/job_records.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "chief/events/event_reading.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

constexpr Term kTerm = 3;
const Generation kFirst = {kTerm, 1};

JobRecords::Instant After(double seconds) {
  return {absl::FromUnixSeconds(1000) + absl::Seconds(seconds),
          absl::FromUnixSeconds(1'700'000'000) + absl::Seconds(seconds)};
}

JobRecords MakeRecords(std::optional<WorkerStatsFile> before = {}) {
  JobRecords::Options options;
  options.job = "job";
  options.term = kTerm;
  options.before = std::move(before);
  return JobRecords(After(0), options);
}

StepsAgreed Steps(const std::vector<uint64_t>& steps) {
  StepsAgreed agreed;
  agreed.step = steps.back();
  for (const uint64_t step : steps) agreed.records.push_back({.step = step, .loss = 1});
  return agreed;
}

void Agree(JobRecords& records, const std::vector<uint64_t>& steps) {
  records.Agreed(After(1), Steps(steps), kFirst, 2);
}

void Join(JobRecords& records, const std::string& worker, uint64_t process) {
  records.Changed(After(0), {.name = worker, .incarnation = {process, process}}, "alpha", "cpu");
}

int64_t StepsBy(JobRecords& records, const std::string& worker) {
  const WorkerStatsFile file = records.Stats(After(2), {});
  for (const WorkerStats& stats : file.workers()) {
    if (stats.worker() == worker) return stats.steps();
  }
  return -1;
}

// The steps of the events whose first value has this tag.
std::vector<int64_t> ToldSteps(const std::string& events, const std::string& tag) {
  std::vector<int64_t> steps;
  for (const auto& event : ReadEvents(events)) {
    if (event.has_summary() && event.summary().value(0).tag() == tag) steps.push_back(event.step());
  }
  return steps;
}

// What a hook saw of a tensor, and the first tag under which it is told.
constexpr char kSeen[] = "tensors/w/min";
lockstep::Observed Seen() {
  lockstep::Observed observed;
  TensorFacts& facts = *observed.mutable_state()->add_statistics();
  facts.set_name("w");
  facts.set_values(4);
  return observed;
}

TEST_CASE("records: a process that joins counts from zero, another chief's from its first report", "[chief]") {
  JobRecords records = MakeRecords();

  records.Reported(After(0), {"old", {{"steps", 500}}});
  records.Reported(After(1), {"old", {{"steps", 520}}});
  Join(records, "new", 1);
  records.Reported(After(1), {"new", {{"steps", 7}}});

  CHECK(StepsBy(records, "old") == 20);
  CHECK(StepsBy(records, "new") == 7);
  Join(records, "new", 2);
  records.Reported(After(2), {"new", {{"steps", 5}}});
  CHECK(StepsBy(records, "new") == 12);
}

TEST_CASE("records: a counter that is no count adds nothing", "[chief]") {
  JobRecords records = MakeRecords();
  Join(records, "w", 1);

  for (const double steps : {std::nan(""), -3.0, std::numeric_limits<double>::infinity()}) {
    records.Reported(After(1), {"w", {{"steps", steps}, {"bytes_uploaded", steps}}});
  }

  CHECK(StepsBy(records, "w") == 0);
}

TEST_CASE("records: a generation is counted once, by the chief that formed it", "[chief]") {
  JobRecords records = MakeRecords();

  records.Agreed(After(1), Steps({1}), {kTerm - 1, 9}, 2);
  CHECK(records.stats().job().generations() == 0);
  records.Agreed(After(1), Steps({2}), kFirst, 2);
  records.Agreed(After(1), Steps({3}), kFirst, 2);
  CHECK(records.stats().job().generations() == 1);
}

TEST_CASE("records: what a hook saw is told behind the loss of its step, once", "[chief]") {
  JobRecords records = MakeRecords();
  Agree(records, {1, 2});
  records.TakeEvents();

  records.Observed(After(1), "look", 4, Seen());
  CHECK(records.TakeEvents().empty());
  Agree(records, {3});
  const std::string third = records.TakeEvents();
  Agree(records, {4});
  const std::string fourth = records.TakeEvents();

  CHECK(ToldSteps(third, kSeen).empty());
  CHECK(ToldSteps(fourth, "loss") == std::vector<int64_t>{4});
  CHECK(ToldSteps(fourth, kSeen) == std::vector<int64_t>{4});
  Agree(records, {5});
  CHECK(ToldSteps(records.TakeEvents(), kSeen).empty());
}

TEST_CASE("records: what was seen of a state that is given up is not told", "[chief]") {
  JobRecords records = MakeRecords();
  Agree(records, {1, 2});
  records.Observed(After(1), "look", 3, Seen());

  records.WentBack(After(1), {.step = 1, .found_at = 2, .names = {"bad"}, .hosts = {"beta"}});
  Agree(records, {2, 3});

  const std::string events = records.TakeEvents();
  CHECK(ToldSteps(events, "loss") == std::vector<int64_t>{1, 2, 2, 3});
  CHECK(ToldSteps(events, kSeen).empty());
  CHECK(records.told_step() == 3);
  REQUIRE(records.stats().repairs().size() == 1);
  CHECK(records.stats().repairs()[0].workers(0) == "bad");
  CHECK(records.stats().repairs()[0].at_ms() == 1'700'000'001'000);
}

TEST_CASE("records: observations that wait for their loss are bounded, and the newest are kept", "[chief]") {
  JobRecords records = MakeRecords();
  for (int64_t step = 1; step <= 300; ++step) records.Observed(After(1), "look", step, Seen());

  std::vector<uint64_t> steps(300);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = i + 1;
  Agree(records, steps);

  const std::vector<int64_t> told = ToldSteps(records.TakeEvents(), kSeen);
  REQUIRE(told.size() == 256);
  CHECK(told.front() == 45);
  CHECK(told.back() == 300);
}

TEST_CASE("records: the end gives the history that its interval would have kept back", "[chief]") {
  JobRecords records = MakeRecords();
  Join(records, "w", 1);
  records.Reported(After(1), {"w", {{"steps", 7}}});
  Agree(records, {1});

  CHECK(records.Take(After(2), {}).history.empty());
  records.Ended(After(3), {.code = 0, .reason = "done"}, /*completed=*/true);
  const RecordBatch last = records.TakeLast(After(3), {}, 1);

  CHECK_THAT(last.history, Contains("\"worker\":\"w\"") && Contains("\"steps\":7"));
  CHECK_THAT(last.timeline, Contains("chief_ended"));
  CHECK_THAT(last.stats, Contains("\"completed\": true"));
}

TEST_CASE("records: time without a chief counts, and what the core says of hosts is in the statistics", "[chief]") {
  WorkerStatsFile before;
  before.mutable_job()->set_written_ms(absl::ToUnixMillis(After(-40).wall));
  before.mutable_job()->set_exit_code(75);
  before.mutable_job()->mutable_goodput()->set_no_chief(2);
  JobRecords records = MakeRecords(before);
  CoordinatorView view;
  view.saves_failed = 4;
  view.hosts.push_back({.host = "beta", .failures = 3, .excluded = true, .cause = "out of memory"});

  const WorkerStatsFile stats = records.Stats(After(0), view);

  CHECK(stats.job().goodput().no_chief() == Approx(42));
  CHECK(stats.job().saves_failed() == 4);
  REQUIRE(stats.hosts_size() == 1);
  CHECK(stats.hosts(0).cause() == "out of memory");
}

TEST_CASE("records: an evaluation is told to TensorBoard and to the timeline", "[chief]") {
  JobRecords records = MakeRecords();

  records.Evaluated(After(1), 10, {{"loss", 0.5}, {"accuracy", 0.875}});

  const RecordBatch batch = records.Take(After(1), {});
  CHECK(ToldSteps(batch.events, "evaluation/loss") == std::vector<int64_t>{10});
  CHECK_THAT(batch.timeline, Contains("loss 0.5, accuracy 0.875"));
}

}  // namespace
}  // namespace lockstep::chief
