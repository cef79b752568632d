#include "worker/hooks/state_facts.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace lockstep::worker {
namespace {

TEST_CASE("state facts: the numbers of a tensor are those of its finite values", "[hooks]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

  const TensorFacts facts = FactsOf("w", std::vector<float>{-2, 0, 0, 4, nan, inf}, /*histogram=*/false);

  CHECK(facts.name() == "w");
  CHECK(facts.values() == 6);
  CHECK(facts.not_finite() == 2);
  CHECK(facts.zeros() == 2);
  CHECK(facts.min() == -2);
  CHECK(facts.max() == 4);
  CHECK(facts.sum() == 2);
  CHECK(facts.sum_squares() == 20);
  CHECK(facts.deviation() == Approx(std::sqrt(4.75)));
  CHECK(facts.bucket_size() == 0);
}

TEST_CASE("state facts: a deviation that is small beside the mean is not lost", "[hooks]") {
  CHECK(FactsOf("w", std::vector<float>{1e6f, 1e6f + 1, 1e6f, 1e6f + 1}, false).deviation() == Approx(0.5));
}

TEST_CASE("state facts: a histogram has every finite value in one bucket", "[hooks]") {
  std::vector<float> values;
  for (int i = 0; i <= 3000; ++i) values.push_back(static_cast<float>(i) / 1000);
  values.push_back(std::numeric_limits<float>::quiet_NaN());

  const TensorFacts facts = FactsOf("w", values, /*histogram=*/true);

  REQUIRE(facts.bucket_size() == kHistogramBuckets);
  REQUIRE(facts.bucket_limit_size() == kHistogramBuckets);
  CHECK(std::accumulate(facts.bucket().begin(), facts.bucket().end(), 0.0) == 3001);
  CHECK(std::is_sorted(facts.bucket_limit().begin(), facts.bucket_limit().end()));
  CHECK(facts.bucket_limit(kHistogramBuckets - 1) == 3);
  CHECK(facts.bucket(0) == Approx(100).margin(1));
  CHECK(facts.bucket(kHistogramBuckets - 1) == Approx(101).margin(1));

  const TensorFacts flat = FactsOf("w", std::vector<float>{7, 7, 7}, true);
  REQUIRE(flat.bucket_size() == 1);
  CHECK(flat.bucket(0) == 3);
  CHECK(FactsOf("w", std::vector<float>{}, true).bucket_size() == 0);
}

TEST_CASE("state facts: one value that is not finite makes a tensor so", "[hooks]") {
  CHECK(IsFinite(std::vector<float>{}));
  CHECK(IsFinite(std::vector<float>{-1, 3e38f}));
  CHECK_FALSE(IsFinite(std::vector<float>{0, std::numeric_limits<float>::infinity()}));
  CHECK_FALSE(IsFinite(std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 1}));
}

TEST_CASE("state facts: hooks look at tensors by pattern, at steps and evaluations", "[hooks]") {
  StateLayout layout;
  layout.tensors = {{.spec = {"fc.weight", DType::kF32, {2, 2}}},
                    {.spec = {"fc.bias", DType::kF32, {2}}},
                    {.spec = {"momentum.fc.weight", DType::kF32, {2, 2}}},
                    {.spec = {"lockstep.exponent.fc.weight", DType::kI32, {}}}};
  JobSpec job;
  job.mutable_train()->set_global_batch_size(100);
  job.add_hooks()->set_stop(true);
  job::Hook* const epochs = job.add_hooks();
  epochs->set_name("epochs");
  epochs->mutable_every()->set_milli_epochs(1000);
  epochs->add_statistics("*");
  job::Hook* const evaluations = job.add_hooks();
  evaluations->set_on(job::Hook::ON_EVALUATION);
  evaluations->add_histograms("fc.*");
  job::Hook* const alarm = job.add_hooks();
  alarm->set_name("alarm");
  alarm->set_on(job::Hook::ON_NAN);
  alarm->set_stop(true);

  const std::vector<StateHook> hooks = StateHooksOf(job, layout, 1000);

  REQUIRE(hooks.size() == 3);
  CHECK(hooks[0].name == "epochs");
  CHECK(hooks[0].statistics == std::vector<int>{0, 1, 2});
  CHECK(hooks[0].histograms.empty());
  CHECK(hooks[0].when.every == 10);
  CHECK(hooks[1].histograms == std::vector<int>{0, 1});
  CHECK(hooks[1].when.on == job::Hook::ON_EVALUATION);
  CHECK(hooks[2].name == "alarm");  // it is told which tensor is not finite
  CHECK_FALSE(hooks[2].LooksAtTensors());
}

}  // namespace
}  // namespace lockstep::worker
