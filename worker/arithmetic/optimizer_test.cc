#include "worker/arithmetic/optimizer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "worker/arithmetic/element_update.h"
#include "worker/arithmetic/update_loops.h"

namespace lockstep::worker {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

UpdateRule Rule(OptimizerRule optimizer, double lr) {
  UpdateRule rule;
  rule.optimizer = optimizer;
  rule.schedule.lr = lr;
  return rule;
}

// As a step does with the gradients of all parameters, in their order.
double GlobalNorm(absl::Span<const absl::Span<const float>> gradients, double denominator) {
  double sum = 0;
  for (const absl::Span<const float>& gradient : gradients) sum += SumOfSquares(gradient);
  return std::sqrt(sum) / denominator;
}

// A parameter of any size with its slots.
struct Replica {
  std::vector<float> value;
  std::vector<float> slot0;
  std::vector<float> slot1;
  std::vector<float> average;

  explicit Replica(std::vector<float> initial)
      : value(std::move(initial)), slot0(value.size()), slot1(value.size()), average(value) {}

  void Step(const UpdateRule& rule, int64_t step, const std::vector<float>& gradient, double denominator = 1) {
    const absl::Span<const float> spans[] = {gradient};
    const UpdateScalars scalars = MakeUpdateScalars(rule, {.step = step}, denominator, GlobalNorm(spans, denominator));
    UpdateElements(FormulaOf(rule.optimizer), scalars,
                   {.count = static_cast<int64_t>(value.size()),
                    .value = value.data(),
                    .gradient = gradient.data(),
                    .slots = {slot0.data(), slot1.data()},
                    .average = rule.ema.has_value() ? average.data() : nullptr});
  }
};

// The same updates in float64, written from the documentation of torch.optim.
struct Oracle {
  std::vector<double> value, slot0, slot1;

  explicit Oracle(const std::vector<float>& initial)
      : value(initial.begin(), initial.end()), slot0(value.size()), slot1(value.size()) {}

  void Step(const UpdateRule& rule, int64_t step, const std::vector<float>& sum, double denominator) {
    const OptimizerRule& o = rule.optimizer;
    const double lr = rule.schedule.lr;
    double norm = 0;
    for (const float g : sum) norm += static_cast<double>(g) / denominator * g / denominator;
    const double clip =
        rule.clip_global_norm.has_value() ? std::min(1.0, *rule.clip_global_norm / (std::sqrt(norm) + 1e-6)) : 1.0;
    for (size_t i = 0; i < value.size(); ++i) {
      double g = sum[i] / denominator * clip;
      if (o.kind == OptimizerKind::kAdamW || o.kind == OptimizerKind::kLion) {
        value[i] -= lr * o.weight_decay * value[i];
      } else {
        g += o.weight_decay * value[i];
      }
      if (o.kind == OptimizerKind::kSgd) {
        slot0[i] = o.momentum * slot0[i] + g;
        value[i] -= lr * (o.momentum == 0 ? g : o.nesterov ? g + o.momentum * slot0[i] : slot0[i]);
        continue;
      }
      if (o.kind == OptimizerKind::kRmsProp) {
        slot0[i] = o.beta2 * slot0[i] + (1 - o.beta2) * g * g;
        slot1[i] = o.momentum * slot1[i] + g / (std::sqrt(slot0[i]) + o.epsilon);
        value[i] -= lr * slot1[i];
        continue;
      }
      if (o.kind == OptimizerKind::kAdagrad) {
        slot0[i] += g * g;
        value[i] -= lr * g / (std::sqrt(slot0[i]) + o.epsilon);
        continue;
      }
      if (o.kind == OptimizerKind::kLion) {
        const double direction = o.beta1 * slot0[i] + (1 - o.beta1) * g;
        value[i] -= lr * static_cast<double>((direction > 0) - (direction < 0));
        slot0[i] = o.beta2 * slot0[i] + (1 - o.beta2) * g;
        continue;
      }
      slot0[i] = o.beta1 * slot0[i] + (1 - o.beta1) * g;
      slot1[i] = o.beta2 * slot1[i] + (1 - o.beta2) * g * g;
      const double t = static_cast<double>(step + 1);
      const double mean = slot0[i] / (1 - std::pow(o.beta1, t));
      const double square = slot1[i] / (1 - std::pow(o.beta2, t));
      value[i] -= lr * mean / (std::sqrt(square) + o.epsilon);
    }
  }
};

using Golden = std::map<std::pair<std::string, int>, std::vector<double>>;

Golden ReadGolden() {
  std::ifstream file("tests/conformance/pytorch/optimizers.txt");
  REQUIRE(file.good());
  Golden golden;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int step = 0;
    words >> name >> step;
    std::vector<double>& values = golden[{name, step}];
    for (double v = 0; words >> v;) values.push_back(v);
  }
  return golden;
}

struct NamedRule {
  std::string name;
  UpdateRule rule;
};

// The cases of tests/conformance/pytorch/optimizers.py.
std::vector<NamedRule> GoldenRules() {
  std::vector<NamedRule> rules = {
      {"sgd", Rule({}, 0.1)},
      {"sgd_decay", Rule({.weight_decay = 0.05}, 0.1)},
      {"sgd_momentum", Rule({.momentum = 0.9, .weight_decay = 0.01}, 0.05)},
      {"sgd_nesterov", Rule({.momentum = 0.9, .nesterov = true}, 0.05)},
      {"sgd_clipped", Rule({.momentum = 0.5}, 0.1)},
      {"adam", Rule({.kind = OptimizerKind::kAdam}, 0.01)},
      {"adam_decay",
       Rule({.kind = OptimizerKind::kAdam, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6}, 0.01)},
      {"adamw", Rule({.kind = OptimizerKind::kAdamW, .weight_decay = 0.1}, 0.01)},
      {"adamw_clipped", Rule({.kind = OptimizerKind::kAdamW, .weight_decay = 0.01, .beta2 = 0.99}, 0.02)},
      {"rmsprop", Rule({.kind = OptimizerKind::kRmsProp, .beta2 = 0.99}, 0.01)},
      {"rmsprop_momentum",
       Rule({.kind = OptimizerKind::kRmsProp, .momentum = 0.9, .weight_decay = 0.05, .beta2 = 0.9, .epsilon = 1e-3},
            0.01)},
      {"adagrad", Rule({.kind = OptimizerKind::kAdagrad, .epsilon = 1e-10}, 0.1)},
      {"adagrad_decay", Rule({.kind = OptimizerKind::kAdagrad, .weight_decay = 0.1, .epsilon = 1e-3}, 0.05)},
      {"lion", Rule({.kind = OptimizerKind::kLion, .beta2 = 0.99}, 0.01)},
      {"lion_decay", Rule({.kind = OptimizerKind::kLion, .weight_decay = 0.1, .beta1 = 0.95, .beta2 = 0.98}, 0.02)},
  };
  rules[12].rule.clip_global_norm = 0.75;
  rules[14].rule.clip_global_norm = 0.5;
  rules[4].rule.clip_global_norm = 0.75;
  rules[8].rule.clip_global_norm = 0.5;
  return rules;
}

// What optimizers.py gives the parameter at a step. Times 4, the denominator: the sum over four samples.
std::vector<float> GoldenGradient(int step) {
  std::vector<float> gradient(6);
  for (int i = 0; i < 6; ++i) {
    gradient[static_cast<size_t>(i)] = static_cast<float>(((step * 7 + i * 13) % 17 - 8) * (i + 1)) / 16;
  }
  return gradient;
}

TEST_CASE("optimizer: averages are those of PyTorch's AveragedModel", "[optimizer]") {
  const Golden golden = ReadGolden();
  const std::vector<NamedRule> rules = GoldenRules();
  struct Case {
    std::string name;
    UpdateRule rule;
    EmaRule ema;
  };
  for (const Case& c :
       {Case{"ema_sgd_momentum", rules[2].rule, {.decay = 0.9}}, Case{"ema_adamw", rules[7].rule, {.decay = 0.999}},
        Case{"ema_adamw_late", rules[7].rule, {.decay = 0.75, .start_steps = 5}}}) {
    UpdateRule rule = c.rule;
    rule.ema = c.ema;
    Replica replica({-0.625f, -0.375f, -0.125f, 0.125f, 0.375f, 0.625f});
    Replica without(replica.value);
    for (int step = 0; step < 12; ++step) {
      replica.Step(rule, step, GoldenGradient(step), 4);
      without.Step(c.rule, step, GoldenGradient(step), 4);
      const std::vector<double>& expected = golden.at({c.name, step + 1});
      for (size_t i = 0; i < 6; ++i) {
        INFO(c.name << " step " << step + 1 << " element " << i);
        CHECK(replica.average[i] == Approx(expected[i]).margin(5e-7).epsilon(2e-6));
      }
    }
    CHECK(replica.value == without.value);
  }
}

TEST_CASE("optimizer: the updates are PyTorch's", "[optimizer]") {
  const Golden golden = ReadGolden();
  for (const NamedRule& c : GoldenRules()) {
    Replica replica({-0.625f, -0.375f, -0.125f, 0.125f, 0.375f, 0.625f});
    for (int step = 0; step < 12; ++step) {
      replica.Step(c.rule, step, GoldenGradient(step), 4);
      const std::vector<double>& expected = golden.at({c.name, step + 1});
      for (size_t i = 0; i < 6; ++i) {
        INFO(c.name << " step " << step + 1 << " element " << i);
        CHECK(replica.value[i] == Approx(expected[i]).margin(5e-7).epsilon(2e-6));
      }
    }
  }
}

TEST_CASE("optimizer: a parameter group has its own rate and decay, as PyTorch's", "[optimizer]") {
  const Golden golden = ReadGolden();
  UpdateRule rule = Rule({.kind = OptimizerKind::kAdamW, .weight_decay = 0.1}, 0.01);
  rule.schedule.kind = ScheduleKind::kCosine;
  rule.schedule.total_steps = 12;
  rule.schedule.min_lr = 0.001;
  const UpdateRule of_group = RuleOfGroup(rule, {.parameters = {"w"}, .lr = 0.03, .weight_decay = 0.2});
  Replica replica({-0.625f, -0.375f, -0.125f, 0.125f, 0.375f, 0.625f});
  for (int step = 0; step < 12; ++step) {
    replica.Step(of_group, step, GoldenGradient(step), 4);
    const std::vector<double>& expected = golden.at({"group_adamw", step + 1});
    for (size_t i = 0; i < 6; ++i) {
      INFO("step " << step + 1 << " element " << i);
      CHECK(replica.value[i] == Approx(expected[i]).margin(5e-7).epsilon(2e-6));
    }
  }
}

TEST_CASE("optimizer: against float64 the error stays at a few roundings", "[optimizer]") {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const NamedRule& c : GoldenRules()) {
    std::vector<float> initial(300);
    for (float& v : initial) v = normal(random);
    Replica replica(initial);
    Oracle oracle(initial);
    for (int step = 0; step < 40; ++step) {
      std::vector<float> sum(initial.size());
      for (float& v : sum) v = normal(random) * 37;
      replica.Step(c.rule, step, sum, 37);
      oracle.Step(c.rule, step, sum, 37);
    }
    double worst = 0;
    for (size_t i = 0; i < initial.size(); ++i) {
      worst = std::max(worst, std::abs(replica.value[i] - oracle.value[i]) / std::max(1.0, std::abs(oracle.value[i])));
    }
    INFO(c.name);
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("optimizer: any split of a parameter gives the same bits", "[optimizer]") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const NamedRule& c : GoldenRules()) {
    std::vector<float> initial(257), gradient(257);
    for (float& v : initial) v = normal(random);
    for (float& v : gradient) v = normal(random);
    Replica whole(initial), parts(initial);
    for (int step = 0; step < 3; ++step) {
      whole.Step(c.rule, step, gradient, 3);
      const absl::Span<const float> spans[] = {gradient};
      const UpdateScalars scalars = MakeUpdateScalars(c.rule, {.step = step}, 3, GlobalNorm(spans, 3));
      for (size_t begin = 0; begin < initial.size();) {
        const size_t size = std::min<size_t>(1 + random() % 40, initial.size() - begin);
        UpdateElements(FormulaOf(c.rule.optimizer), scalars,
                       {.count = static_cast<int64_t>(size),
                        .value = parts.value.data() + begin,
                        .gradient = gradient.data() + begin,
                        .slots = {parts.slot0.data() + begin, parts.slot1.data() + begin}});
        begin += size;
      }
    }
    INFO(c.name);
    CHECK(std::memcmp(whole.value.data(), parts.value.data(), whole.value.size() * 4) == 0);
    CHECK(std::memcmp(whole.slot1.data(), parts.slot1.data(), whole.slot1.size() * 4) == 0);
  }
}

TEST_CASE("optimizer: plain SGD needs no slot", "[optimizer]") {
  std::vector<float> value = {1}, gradient = {2};
  UpdateElements(FormulaOf({}), MakeUpdateScalars(Rule({}, 0.5), {}, 1, 0),
                 {.count = 1, .value = value.data(), .gradient = gradient.data()});
  CHECK(value[0] == 0);
}

TEST_CASE("optimizer: the global norm is over the mean gradient of all parameters", "[optimizer]") {
  const std::vector<float> a = {3, 0}, b = {0, 4};
  CHECK(GlobalNorm({a, b}, 1) == 5);
  CHECK(GlobalNorm({a, b}, 10) == 0.5);
  CHECK(GlobalNorm({}, 1) == 0);
  CHECK(std::isnan(GlobalNorm({a, std::vector<float>{kNan}}, 1)));
  const std::vector<float> huge(10000, 1e30f);
  CHECK(GlobalNorm({huge}, 1) == Approx(1e32));

  // Blocks keep the sum exact where one running sum would lose the small ones.
  std::vector<float> values(3 * 4096, 1.0f);
  values[0] = 0x1p27f;
  double expected = 0;
  for (size_t begin = 0; begin < values.size(); begin += 4096) {
    double block = 0;
    for (size_t i = begin; i < begin + 4096; ++i) block += static_cast<double>(values[i]) * values[i];
    expected += block;
  }
  CHECK(GlobalNorm({values}, 1) == std::sqrt(expected));

  UpdateRule rule = Rule({}, 1);
  CHECK_FALSE(MakeUpdateScalars(rule, {}, 1, 5).clips);
  rule.clip_global_norm = 2.5;
  CHECK(MakeUpdateScalars(rule, {}, 1, 5).clip == Approx(0.5));
  CHECK(MakeUpdateScalars(rule, {}, 1, 2).clip == 1);
}

TEST_CASE("optimizer: every instruction set gives the same bits", "[optimizer]") {
  std::vector<decltype(&portable::UpdateElements)> loops = {&portable::UpdateElements};
  if (__builtin_cpu_supports("avx2")) loops.push_back(&avx2::UpdateElements);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) loops.push_back(&avx512::UpdateElements);
  std::vector<OptimizerRule> rules;
  for (const double decay : {0.0, 0.01}) {
    rules.push_back({.kind = OptimizerKind::kSgd, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kSgd, .momentum = 0.9, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kAdam, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kAdamW, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kRmsProp, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kRmsProp, .momentum = 0.9, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kAdagrad, .weight_decay = decay});
    rules.push_back({.kind = OptimizerKind::kLion, .weight_decay = decay});
  }
  std::mt19937 random(7);
  std::vector<float> values(5 * 1037);
  for (float& value : values) value = std::ldexp(static_cast<float>(random()), -32 - static_cast<int>(random() % 20));

  for (const OptimizerRule& rule : rules) {
    UpdateRule whole = Rule(rule, 0.1);
    whole.clip_global_norm = 0.5;
    whole.ema = EmaRule{.decay = 0.99};
    const UpdateScalars scalars = MakeUpdateScalars(whole, {.step = 3}, 64, 2.0);
    std::vector<std::vector<float>> results;
    for (const auto loop : loops) {
      for (const bool averages : {false, true}) {
        results.push_back(values);
        float* const at = results.back().data();
        loop(FormulaOf(rule), scalars,
             {.count = 1037,
              .value = at,
              .gradient = at + 1037,
              .slots = {at + 2 * 1037, at + 3 * 1037},
              .average = averages ? at + 4 * 1037 : nullptr});
      }
    }
    for (size_t i = 2; i < results.size(); ++i) CHECK(results[i] == results[i % 2]);
    CHECK(std::equal(results[0].begin(), results[0].begin() + 4 * 1037, results[1].begin()));
    CHECK(results[0] != results[1]);
    CHECK(results[0] != values);
  }
}

TEST_CASE("optimizer: what a NaN does is decided by the policy alone", "[optimizer]") {
  CHECK(DecideOnNan(OnNan::kStop, false) == NanAction::kApply);
  CHECK(DecideOnNan(OnNan::kSkipStep, false) == NanAction::kApply);
  CHECK(DecideOnNan(OnNan::kStop, true) == NanAction::kStop);
  CHECK(DecideOnNan(OnNan::kSkipStep, true) == NanAction::kSkip);
}

}  // namespace
}  // namespace lockstep::worker
