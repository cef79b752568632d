#include "deploy/cli/top_view.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/cli/columns.h"

namespace lockstep::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// A job of `members` workers; worker N computes for 10 + N ms of a step and waits for the rest.
JobState RunningJob(int members) {
  JobState state;
  state.answered = true;
  proto::StatusReply& status = state.status;
  status.set_job("mnist");
  status.set_phase("RUNNING");
  status.set_step(4402);
  status.set_end_step(9000);
  status.set_published_step(4000);
  status.set_loss(0.31);
  status.set_samples_per_second(12000);
  status.set_eta_seconds(81);
  status.mutable_generation()->set_term(3);
  status.mutable_generation()->set_counter(7);
  const double longest = 10 + members - 1;
  for (int i = 0; i < members; ++i) {
    proto::WorkerStatus& worker = *status.add_workers();
    worker.set_name(absl::StrCat("worker-", i));
    worker.set_host(absl::StrCat("host-", i % 4));
    worker.set_state("member");
    worker.set_rank(i);
    worker.set_step(4402);
    worker.set_step_ms(longest + 1);
    worker.set_compute_ms(10 + i);
    worker.set_all_reduce_ms(longest - 10 - i + 1);
    worker.set_samples_per_second(100);
    worker.set_losses(i == 1 ? 2 : 0);
    worker.set_crashes(i == 1 ? 1 : 0);
  }
  return state;
}

// The names in the order of the table.
std::vector<std::string> Names(const JobState& state, TopSettings settings) {
  std::vector<std::string> names;
  for (const std::string& row : TopRows(state, settings)) {
    if (row.rfind("worker-", 0) == 0) names.push_back(row.substr(0, row.find(' ')));
  }
  return names;
}

TEST_CASE("top: the job, its workers and who waits for whom stand in rows", "[cli]") {
  TopSettings settings;
  settings.columns = 120;
  const std::vector<std::string> rows = TopRows(RunningJob(3), settings);

  REQUIRE(rows.size() == 9);
  CHECK(rows[0] == "mnist  RUNNING  step 4402/9000  48%  ETA 1m21s  loss 0.31  12000 samples/s");
  CHECK_THAT(rows[1], StartsWith("saved step 4000  generation 3.7  failures 0/0"));
  CHECK(rows[2] == "the others wait for worker-2: 8% of each step (its own 12.0 ms, theirs 11.0 ms)");
  CHECK_THAT(rows[4], StartsWith("WORKER   HOST   STATE     RANK"));
  CHECK_THAT(rows[6], StartsWith("worker-1 host-1 member       1     4402    11.0    2.00       -       100"));
  CHECK(rows[6].back() == '3');
  CHECK(rows[8] == "3 workers, by name");
}

TEST_CASE("top: workers are sorted by name as people count, by their own time, and by waiting", "[cli]") {
  const JobState state = RunningJob(12);
  CHECK(Names(state, {}) == std::vector<std::string>{"worker-0", "worker-1", "worker-2", "worker-3", "worker-4",
                                                     "worker-5", "worker-6", "worker-7", "worker-8", "worker-9",
                                                     "worker-10", "worker-11"});
  CHECK(Names(state, {.order = TopOrder::kOwnTime}).front() == "worker-11");
  CHECK(Names(state, {.order = TopOrder::kWaiting}).front() == "worker-0");
}

TEST_CASE("top: every column of the table fits 80 columns", "[cli]") {
  const JobState state = RunningJob(100);  // worker-99
  TopSettings settings;
  CHECK_THAT(TopRows(state, settings)[4], Catch::Matchers::EndsWith("KILLS"));
}

TEST_CASE("top: 200 workers fit the screen and can be scrolled to the last", "[cli]") {
  const JobState state = RunningJob(200);
  TopSettings settings;
  settings.rows = 24;
  for (const size_t columns : {40, 80, 200}) {
    settings.columns = columns;
    const std::vector<std::string> rows = TopRows(state, settings);
    CHECK(rows.size() == 24);
    for (const std::string& row : rows) CHECK(ColumnsOf(row) <= columns);
    CHECK_THAT(rows.back(), StartsWith("workers 1 to 18 of 200, by name"));
  }

  settings.first = 1000;
  CHECK(Names(state, settings).back() == "worker-199");
  CHECK(TopRows(state, settings).size() == 24);
  CHECK(settings.first == 182);
  settings.rows = 0;
  CHECK(Names(state, settings).size() == 200);
  for (size_t low = 1; low < 8; ++low) {
    settings.rows = low;
    CHECK(TopRows(state, settings).size() == low);
  }
}

TEST_CASE("top: nobody is blamed where nobody keeps the others waiting", "[cli]") {
  CHECK(WhoWaits(RunningJob(1)) == "one member: it waits for nobody");
  JobState even = RunningJob(3);
  for (auto& worker : *even.status.mutable_workers()) worker.set_compute_ms(10);
  CHECK(WhoWaits(even) == "no member keeps the others waiting");
  even.status.mutable_workers(1)->set_data_ms(10);  // waiting for data keeps others waiting as well
  CHECK_THAT(WhoWaits(even), StartsWith("the others wait for worker-1: 50% of each step"));
  even.status.mutable_workers(1)->set_rank(-1);  // a spare one keeps nobody waiting
  CHECK(WhoWaits(even) == "no member keeps the others waiting");
  even.status.set_waiting_for("2 of 3 workers");
  CHECK(WhoWaits(even) == "the job waits for 2 of 3 workers");
}

TEST_CASE("top: without a chief the directory's statistics are shown, and names cannot move the cursor", "[cli]") {
  JobState state;
  state.status.set_phase("NOT_RUNNING");
  state.status.set_step(40);
  state.reason = "the chief ended without a word";
  state.stats.emplace();
  WorkerStats& stats = *state.stats->add_workers();
  stats.set_worker("worker-0\x1b[2J");
  stats.set_host("alpha");
  stats.set_steps(100);
  stats.set_compute_seconds(2);
  stats.set_all_reduce_seconds(0.5);
  stats.set_losses(4);
  stats.set_connected(true);  // by the last word of a chief that was killed
  stats.set_samples_per_second(777);

  TopSettings settings;
  settings.columns = 120;
  const std::vector<std::string> rows = TopRows(state, settings);
  REQUIRE(rows.size() == 6);
  CHECK_THAT(rows[1], Contains("the chief ended without a word"));
  CHECK_THAT(rows[4],
             StartsWith("worker-0\\x1b[2J alpha gone") && Contains(" 20.0 ") && Contains(" 5.00 ") && !Contains("777"));
  settings.colour = true;
  CHECK_THAT(TopRows(state, settings)[4], StartsWith("\x1b[2m") && Catch::Matchers::EndsWith("\x1b[0m"));
}

}  // namespace
}  // namespace lockstep::cli
