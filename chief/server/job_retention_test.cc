#include "chief/server/job_retention.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::chief {
namespace {

// 60,000 samples, 60 of them a step: 1,000 steps an epoch.
JobSpec JobWith(const std::string& checkpoint) {
  const std::string yaml =
      "name: t\n"
      "model: {builtin: {name: lenet}, loss: softmax_cross_entropy}\n"
      "data: {train: {inputs: x.idx, labels: y.idx}}\n"
      "train: {global_batch_size: 60, logical_shards: 4, duration: 10ep, seed: 1, optimizer: {name: sgd, lr: 0.1}}\n"
      "checkpoint: " +
      checkpoint + "\n";
  const absl::StatusOr<JobSpec> job = ParseJob(yaml, "job.yaml");
  INFO(job.status());
  REQUIRE(job.ok());
  return *job;
}

constexpr int64_t kSamples = 60000;

TEST_CASE("retention: a job's distance between checkpoints that stay comes in every unit of training", "[retention]") {
  const auto steps = [](const std::string& amount) {
    return RetentionOf(JobWith("{keep_every: " + amount + "}"), kSamples).keep_every_steps;
  };
  CHECK(steps("250steps") == 250);
  CHECK(steps("0.5ep") == 500);
  CHECK(steps("90samples") == 2);
  const RetentionRule hourly = RetentionOf(JobWith("{keep_every: 1h, keep_latest: 5}"), kSamples);
  CHECK(hourly.keep_every_steps == 0);
  CHECK(hourly.keep_every_ms == 3600 * 1000);
  CHECK(hourly.keep_latest == 5);
  CHECK(RetentionOf(JobWith("{keep_latest: 2}"), kSamples).keep_every_ms == 0);
}

TEST_CASE("retention: the room that is needed counts what stays, and says what it cannot count", "[retention]") {
  const auto room = [](const std::string& checkpoint, int64_t end_step = 10000) {
    return RoomFor(JobWith(checkpoint), kSamples, end_step);
  };
  CHECK(room("{keep_latest: 3}").checkpoints == 4);
  CHECK(room("{keep_latest: 3}").more.empty());
  CHECK(room("{keep_latest: 3, keep_every: 1000steps}").checkpoints == 14);
  CHECK(room("{keep_latest: 3, keep_every: 1steps, every: 500steps}").checkpoints == 24);
  CHECK(room("{keep_latest: 3, keep_every: 1h}").checkpoints == 4);
  CHECK(room("{keep_latest: 3, keep_every: 1h}").more == " and one more for every 1h of training");
  constexpr int64_t kByClock = std::numeric_limits<int64_t>::max();
  CHECK(room("{keep_latest: 3, keep_every: 2ep}", kByClock).more == " and one more for every 2ep of training");
}

}  // namespace
}  // namespace lockstep::chief
