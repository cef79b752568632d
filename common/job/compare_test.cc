// What may change between two starts of a job.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/job/job_test_util.h"

namespace lockstep {
namespace {

TEST_CASE("job: settings that change bits are told from those that may change", "[job]") {
  const auto compare = [](const std::vector<std::string>& before, const std::vector<std::string>& after) {
    return CompareJobs(Good(kJob, before), Good(kJob, after));
  };
  CHECK(compare({}, {}).CanResume());
  CHECK(compare({}, {}).allowed.empty());

  for (const char* setting :
       {"name=other", "train.seed=1", "train.optimizer.lr=0.2", "train.global_batch_size=512", "train.logical_shards=4",
        "model.loss=mse", "data.train.labels=z", "resources.cpu_threads=2", "train.clip_norm=1",
        "data.normalize.mean=1", "train.ema.decay=0.9", "resources.device=cuda", "numerics.tf32=true"}) {
    INFO(setting);
    const JobDifference difference = compare({}, {setting});
    REQUIRE_FALSE(difference.CanResume());
    const std::string key = std::string(setting).substr(0, std::string(setting).find('='));
    CHECK_THAT(difference.RefusedText(), Catch::Contains(key));
  }
  for (const char* setting :
       {"cluster.workers=2:3", "checkpoint.every=5s", "checkpoint.dir=/o", "failure.max_failures=9",
        "observe.log.level=debug", "train.duration=20ep", "eval.every=2ep", "data.eval.inputs=q", "data.memory=1GiB",
        "cluster.chief_timeout=1h", "resources.gpu_memory=0.5"}) {
    INFO(setting);
    const JobDifference difference = compare({}, {setting});
    CHECK(difference.CanResume());
    CHECK(difference.allowed.size() == 1);
  }
  CHECK(compare({}, {"train.clip_norm=1"}).RefusedText() == "train.clip_norm: (none) -> 1");
  CHECK(compare({"train.seed=1"}, {"train.seed=2"}).refused[0].before == "1");
}

TEST_CASE("job: the duration may change unless the schedule is stretched over it", "[job]") {
  const auto compare = [](const std::vector<std::string>& before, const std::vector<std::string>& after) {
    return CompareJobs(Good(kJob, before), Good(kJob, after));
  };
  CHECK(compare({"train.duration=2h"}, {"train.duration=10steps"}).CanResume());
  const std::string cosine = "train.schedule.name=cosine";
  CHECK_THAT(compare({cosine}, {cosine, "train.duration=20ep"}).RefusedText(), Catch::Contains("train.duration"));
}

TEST_CASE("job: data that moved is the same data when its hash says so", "[job]") {
  const std::string hash = std::string("data.train.sha256=") + std::string(64, 'a');
  const std::string other = std::string("data.train.sha256=") + std::string(64, 'b');
  const auto compare = [](const std::vector<std::string>& before, const std::vector<std::string>& after) {
    return CompareJobs(Good(kJob, before), Good(kJob, after));
  };
  CHECK(compare({hash}, {hash, "data.train.inputs=/elsewhere/x"}).CanResume());
  CHECK_FALSE(compare({hash}, {"data.train.inputs=/elsewhere/x"}).CanResume());
  CHECK_FALSE(compare({hash}, {other}).CanResume());
}

}  // namespace
}  // namespace lockstep
