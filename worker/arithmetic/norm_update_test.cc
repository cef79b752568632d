// LAMB and Adafactor against float64, on whole parameters of many shapes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "worker/arithmetic/element_update.h"
#include "worker/arithmetic/norm_formulas.h"
#include "worker/arithmetic/norm_loops.h"
#include "worker/arithmetic/optimizer.h"

namespace lockstep::worker {
namespace {

using device::TrailingMatrix;

// So many matrices; no columns: a vector of `matrices` elements.
struct NormShape {
  int64_t matrices = 1;
  TrailingMatrix of_each;
  int64_t size() const { return of_each.columns == 0 ? matrices : matrices * of_each.rows * of_each.columns; }
};

// Around the sizes of a warp, of a block of rows and of a block of elements.
const std::vector<NormShape> kNormShapes = {{1, {}},        {6, {}},      {4097, {}},     {1, {1, 1}},
                                            {1, {3, 5}},    {2, {4, 33}}, {1, {300, 40}}, {1, {1, 5000}},
                                            {1, {4099, 2}}, {70, {3, 3}}, {3, {257, 31}}, {2, {513, 17}}};

// A parameter in float32 with all that its update touches. Slots are as long as the parameter: matrices use less.
struct NormReplica {
  NormShape shape;
  std::vector<float> value, slot0, slot1, average;

  NormReplica(const NormShape& of, std::vector<float> initial)
      : shape(of), value(std::move(initial)), slot0(value.size()), slot1(value.size()), average(value) {}

  UpdateArrays Arrays(const std::vector<float>& gradient) {
    return {.count = shape.size(),
            .value = value.data(),
            .gradient = gradient.data(),
            .slots = {slot0.data(), slot1.data()},
            .average = average.data(),
            .shape = shape.of_each};
  }
};

// One step, in float64. `gradient` is the mean gradient, clipped; `decays` is whether the parameter is not in no_decay.
struct NormOracle {
  NormShape shape;
  std::vector<double> value, slot0, slot1;

  NormOracle(const NormShape& of, const std::vector<float>& initial)
      : shape(of), value(initial.begin(), initial.end()), slot0(value.size()), slot1(value.size()) {}

  static double RootOfSquares(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v * v;
    return std::sqrt(sum);
  }

  // Algorithm 2 of You et al.
  void Lamb(const OptimizerRule& o, double lr, int64_t t, bool decays, const std::vector<double>& gradient) {
    std::vector<double> direction(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      slot0[i] = o.beta1 * slot0[i] + (1 - o.beta1) * gradient[i];
      slot1[i] = o.beta2 * slot1[i] + (1 - o.beta2) * gradient[i] * gradient[i];
      const double mean = slot0[i] / (1 - std::pow(o.beta1, t));
      const double square = slot1[i] / (1 - std::pow(o.beta2, t));
      direction[i] = mean / (std::sqrt(square) + o.epsilon) + (decays ? o.weight_decay * value[i] : 0);
    }
    const double of_value = RootOfSquares(value), of_direction = RootOfSquares(direction);
    const double ratio = decays && of_value > 0 && of_direction > 0 ? of_value / of_direction : 1;
    for (size_t i = 0; i < value.size(); ++i) value[i] -= lr * ratio * direction[i];
  }

  // Shazeer and Stern, without the first moment, as the documentation of torch.optim.Adafactor writes it down.
  void Adafactor(const OptimizerRule& o, double lr, int64_t t, bool decays, const std::vector<double>& gradient) {
    const double rate = 1 - std::pow(t, o.beta2_decay);  // of what is kept
    const double elements = static_cast<double>(value.size());
    const double alpha = std::max(o.min_scale, RootOfSquares(value) / std::sqrt(elements)) *
                         std::min(lr, 1 / std::sqrt(static_cast<double>(t)));
    std::vector<double> direction(value.size());
    const auto [rows, columns] = shape.of_each;
    for (int64_t m = 0; columns > 0 && m < shape.matrices; ++m) {
      std::vector<double> of_rows(static_cast<size_t>(rows)), of_columns(static_cast<size_t>(columns));
      for (int64_t i = 0; i < rows * columns; ++i) {
        const double g = gradient[static_cast<size_t>(m * rows * columns + i)];
        of_rows[static_cast<size_t>(i / columns)] += g * g / static_cast<double>(columns);
        of_columns[static_cast<size_t>(i % columns)] += g * g / static_cast<double>(rows);
      }
      double mean = 0;
      for (int64_t r = 0; r < rows; ++r) {
        double& kept = slot0[static_cast<size_t>(m * rows + r)];
        kept = rate * kept + (1 - rate) * of_rows[static_cast<size_t>(r)];
        mean += kept / static_cast<double>(rows);
      }
      for (int64_t c = 0; c < columns; ++c) {
        double& kept = slot1[static_cast<size_t>(m * columns + c)];
        kept = rate * kept + (1 - rate) * of_columns[static_cast<size_t>(c)];
      }
      for (int64_t i = 0; i < rows * columns; ++i) {
        const auto at = static_cast<size_t>(m * rows * columns + i);
        const double square = slot0[static_cast<size_t>(m * rows + i / columns)] *
                              slot1[static_cast<size_t>(m * columns + i % columns)] / std::max(mean, o.epsilon);
        direction[at] = gradient[at] / std::sqrt(std::max(square, o.epsilon * o.epsilon));
      }
    }
    for (size_t i = 0; columns == 0 && i < value.size(); ++i) {
      slot0[i] = rate * slot0[i] + (1 - rate) * gradient[i] * gradient[i];
      direction[i] = gradient[i] / std::sqrt(std::max(slot0[i], o.epsilon * o.epsilon));
    }
    const double over = std::max(1.0, RootOfSquares(direction) / std::sqrt(elements) / o.max_rms);
    for (size_t i = 0; i < value.size(); ++i) {
      value[i] -= (decays ? lr * o.weight_decay : 0) * value[i] + alpha / over * direction[i];
    }
  }
};

std::vector<float> NormValues(std::mt19937& random, int64_t size, float scale) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = normal(random) * scale;
  return values;
}

UpdateRule NormRule(OptimizerKind kind, double lr, double decay) {
  UpdateRule rule;
  rule.optimizer = {.kind = kind, .weight_decay = decay, .epsilon = kind == OptimizerKind::kLamb ? 1e-6 : 0x1p-23};
  rule.schedule.lr = lr;
  return rule;
}

// The rule of all parameters, or that of a group with a rate and a decay of its own.
std::vector<UpdateRule> NormRules() {
  std::vector<UpdateRule> rules;
  for (const OptimizerKind kind : {OptimizerKind::kLamb, OptimizerKind::kAdafactor}) {
    rules.push_back(NormRule(kind, 0.01, 0));
    rules.push_back(NormRule(kind, 0.02, 0.1));
    rules.back().clip_global_norm = 0.5;
    rules.push_back(RuleOfGroup(NormRule(kind, 0.5, 0), {.parameters = {"w"}, .lr = 0.03, .weight_decay = 0.2}));
    rules.push_back(NormRule(kind, 0.01, 0.1));
    rules.back().optimizer.beta1 = 0.8;
    rules.back().optimizer.beta2 = 0.95;
    rules.back().optimizer.beta2_decay = -0.5;
    rules.back().optimizer.max_rms = 0.25;
    rules.back().optimizer.min_scale = 10;
  }
  return rules;
}

TEST_CASE("norm update: against float64 the error stays at a few roundings", "[optimizer]") {
  std::mt19937 random(23);
  int rule_number = 0;
  for (const UpdateRule& rule : NormRules()) {
    const OptimizerRule& o = rule.optimizer;
    for (const NormShape& shape : kNormShapes) {
      const bool decays = random() % 3 != 0;
      CAPTURE(rule_number, shape.matrices, shape.of_each.rows, shape.of_each.columns, decays);
      NormReplica replica(shape, NormValues(random, shape.size(), 0.5f));
      NormOracle oracle(shape, replica.value);
      for (int64_t step = 0; step < 12; ++step) {
        const std::vector<float> sum = NormValues(random, shape.size(), 37.0f);
        const double norm = NormOracle::RootOfSquares({sum.begin(), sum.end()}) / 37;
        const UpdateScalars scalars = MakeUpdateScalars(rule, {.step = step}, 37, norm);
        UpdateElements(FormulaOf(o), decays ? scalars : device::WithoutDecay(scalars), replica.Arrays(sum));
        const double clip = rule.clip_global_norm.has_value() ? std::min(1.0, *rule.clip_global_norm / norm) : 1.0;
        std::vector<double> gradient(sum.begin(), sum.end());
        for (double& g : gradient) g = g / 37 * clip;
        const double lr = rule.schedule.lr;
        if (o.kind == OptimizerKind::kLamb) oracle.Lamb(o, lr, step + 1, decays, gradient);
        if (o.kind == OptimizerKind::kAdafactor) oracle.Adafactor(o, lr, step + 1, decays, gradient);
      }
      double worst = 0;
      for (size_t i = 0; i < replica.value.size(); ++i) {
        worst =
            std::max(worst, std::abs(replica.value[i] - oracle.value[i]) / std::max(1.0, std::abs(oracle.value[i])));
      }
      CHECK(worst < 1e-5);
    }
    ++rule_number;
  }
}

// The cases SHAPED of tests/conformance/pytorch/optimizers.py.
TEST_CASE("norm update: Adafactor is PyTorch's", "[optimizer]") {
  struct Case {
    NormShape shape;
    UpdateRule rule;
  };
  std::map<std::string, Case> cases = {
      {"adafactor_vector", {{6, {}}, NormRule(OptimizerKind::kAdafactor, 0.01, 0)}},
      {"adafactor_matrix", {{1, {2, 3}}, NormRule(OptimizerKind::kAdafactor, 0.02, 0)}},
      {"adafactor_matrices", {{2, {3, 4}}, NormRule(OptimizerKind::kAdafactor, 0.5, 0.1)}},
  };
  UpdateRule& last = cases["adafactor_matrices"].rule;
  last.clip_global_norm = 0.75;
  last.optimizer.epsilon = 1e-5;
  last.optimizer.beta2_decay = -0.6;
  last.optimizer.min_scale = 0.75;
  last.optimizer.max_rms = 1.125;
  std::map<std::string, NormReplica> replicas;
  for (const auto& [name, c] : cases) {
    std::vector<float> initial;
    for (int i = 0; i < c.shape.size(); ++i) initial.push_back(static_cast<float>(i - 2.5) / 4);
    replicas.emplace(name, NormReplica(c.shape, initial));
  }
  int compared = 0;
  std::ifstream file("tests/conformance/pytorch/optimizers.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int step = 0;
    words >> name >> step;
    const auto found = cases.find(name);
    if (found == cases.end()) continue;
    const auto& [shape, rule] = found->second;
    NormReplica& replica = replicas.at(name);
    // Times 4, the denominator: the sum over four samples.
    std::vector<float> sum;
    for (int i = 0; i < shape.size(); ++i) {
      sum.push_back(static_cast<float>((((step - 1) * 7 + i * 13) % 17 - 8) * (i + 1)) / 16);
    }
    const double norm = NormOracle::RootOfSquares({sum.begin(), sum.end()}) / 4;
    UpdateElements(FormulaOf(rule.optimizer), MakeUpdateScalars(rule, {.step = step - 1}, 4, norm),
                   replica.Arrays(sum));
    for (size_t i = 0; i < replica.value.size(); ++i) {
      double expected = 0;
      words >> expected;
      INFO(line << " element " << i);
      CHECK(replica.value[i] == Approx(expected).margin(5e-7).epsilon(2e-6));
      ++compared;
    }
  }
  CHECK(compared == 12 * (6 + 6 + 24));
}

TEST_CASE("norm update: a LAMB step has the length of the parameter times the rate, whatever the gradient's",
          "[optimizer]") {
  std::mt19937 random(29);
  const NormShape shape{1, {30, 40}};
  const UpdateRule rule = NormRule(OptimizerKind::kLamb, 0.01, 0);
  const auto length_of_step = [&](float scale, bool decays, float initial) {
    NormReplica replica(shape, NormValues(random, shape.size(), initial));
    std::vector<double> before(replica.value.begin(), replica.value.end());
    const UpdateScalars scalars = MakeUpdateScalars(rule, {}, 1, 0);
    UpdateElements(FormulaOf(rule.optimizer), decays ? scalars : device::WithoutDecay(scalars),
                   replica.Arrays(NormValues(random, shape.size(), scale)));
    const double length = NormOracle::RootOfSquares(before);
    for (size_t i = 0; i < before.size(); ++i) before[i] -= replica.value[i];
    return NormOracle::RootOfSquares(before) / (length > 0 ? length : 1);
  };

  CHECK(length_of_step(1e-3f, true, 1) == Approx(0.01).epsilon(1e-4));
  CHECK(length_of_step(1e4f, true, 1) == Approx(0.01).epsilon(1e-4));
  // As Adam's: every element moves by the rate.
  const double adam = 0.01 * std::sqrt(1200.0);
  CHECK(length_of_step(1, true, 0) == Approx(adam).epsilon(1e-3));
  CHECK(length_of_step(1, false, 100) * 100 * std::sqrt(1200.0) == Approx(adam).epsilon(0.1));
  // Without a gradient nothing moves, and nothing becomes a NaN.
  CHECK(length_of_step(0, true, 1) == 0);
}

TEST_CASE("norm update: the ratio of norms stays a float", "[optimizer]") {
  const UpdateScalars scalars;
  CHECK(device::LambScale(scalars, {.value = 9, .direction = 4}) == 1.5f);
  CHECK(device::LambScale(scalars, {.value = 0, .direction = 4}) == 1.0f);
  CHECK(device::LambScale(scalars, {.value = 4, .direction = 0}) == 1.0f);
  CHECK(device::LambScale(device::WithoutDecay(scalars), {.value = 9, .direction = 4}) == 1.0f);
  CHECK(std::isfinite(device::LambScale(scalars, {.value = 1e70, .direction = 1e-80})));
}

// Bits after a few steps with moved averages, and after one that copies.
std::vector<float> BitsOfAll(decltype(&portable::UpdateByNorms) loops, const UpdateRule& rule, const NormShape& shape) {
  std::mt19937 random(31);
  NormReplica replica(shape, NormValues(random, shape.size(), 0.5f));
  std::vector<double> scratch(
      static_cast<size_t>(ScratchDoubles(FormulaOf(rule.optimizer), shape.size(), shape.of_each)));
  for (int64_t step = 0; step < 3; ++step) {
    UpdateRule with_average = rule;
    with_average.ema = EmaRule{.decay = 0.9};
    const std::vector<float> sum = NormValues(random, shape.size(), 5.0f);
    UpdateArrays arrays = replica.Arrays(sum);
    arrays.scratch = scratch.data();
    loops(FormulaOf(rule.optimizer), MakeUpdateScalars(with_average, {.step = step}, 5, 2.0), arrays);
  }
  std::vector<float> bits;
  for (const std::vector<float>* part : {&replica.value, &replica.slot0, &replica.slot1, &replica.average}) {
    bits.insert(bits.end(), part->begin(), part->end());
  }
  return bits;
}

TEST_CASE("norm update: every instruction set gives the same bits", "[optimizer]") {
  std::vector<decltype(&portable::UpdateByNorms)> loops = {&portable::UpdateByNorms};
  if (__builtin_cpu_supports("avx2")) loops.push_back(&avx2::UpdateByNorms);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) loops.push_back(&avx512::UpdateByNorms);
  for (const UpdateRule& rule : NormRules()) {
    for (const NormShape& shape : kNormShapes) {
      const std::vector<float> expected = BitsOfAll(loops[0], rule, shape);
      for (const auto loop : loops) {
        const std::vector<float> bits = BitsOfAll(loop, rule, shape);
        CAPTURE(static_cast<int>(rule.optimizer.kind), shape.matrices, shape.of_each.rows, shape.of_each.columns);
        CHECK(std::memcmp(bits.data(), expected.data(), bits.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("norm update: an average moves to the new value, or becomes it", "[optimizer]") {
  std::mt19937 random(37);
  for (const UpdateRule& plain : NormRules()) {
    for (const NormShape& shape : {NormShape{700, {}}, NormShape{2, {20, 30}}}) {
      UpdateRule rule = plain;
      rule.ema = EmaRule{.decay = 0.75};
      NormReplica replica(shape, NormValues(random, shape.size(), 0.5f));
      const std::vector<float> sum = NormValues(random, shape.size(), 5.0f);
      UpdateElements(FormulaOf(rule.optimizer), MakeUpdateScalars(rule, {.step = 0}, 5, 2.0), replica.Arrays(sum));
      CHECK(replica.average == replica.value);

      std::vector<float> expected = replica.average;
      const UpdateScalars scalars = MakeUpdateScalars(rule, {.step = 1}, 5, 2.0);
      UpdateElements(FormulaOf(rule.optimizer), scalars, replica.Arrays(sum));
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = device::MovedAverage(scalars, expected[i], replica.value[i]);
      }
      CHECK(replica.average == expected);
      CHECK(replica.average != replica.value);
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
