#include "tests/contracts/step_math_contract.h"

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "worker/arithmetic/element_update.h"
#include "worker/arithmetic/exact_sum.h"
#include "worker/device/step_math.h"

namespace lockstep {
namespace {

using device::Accumulate;
using device::Device;
using device::StepMath;
using device::Stream;
using device::TensorRange;
using device::UpdateFormula;
using device::UpdateScalars;

// Around the sizes of a block of squares, of a warp and of one element. Indices are not in order.
const std::vector<int64_t> kSizes = {1, 31, 33, 4095, 4096, 4097, 700, 20001};

std::vector<TensorRange> Ranges() {
  std::vector<TensorRange> ranges;
  int64_t begin = 0;
  for (size_t t = 0; t < kSizes.size(); ++t) {
    ranges.push_back({.begin = begin, .size = kSizes[t], .index = static_cast<int32_t>((t * 3) % kSizes.size())});
    begin += (kSizes[t] + 15) / 16 * 16 + 16;
  }
  return ranges;
}

int64_t RunSize() { return Ranges().back().begin + (kSizes.back() + 15) / 16 * 16; }

// Values over many binades, some of them zero, what lies between tensors NaN.
std::vector<float> Values(uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(RunSize()), std::numeric_limits<float>::quiet_NaN());
  std::mt19937 random(seed);
  for (const TensorRange& range : Ranges()) {
    for (int64_t i = 0; i < range.size; ++i) {
      const float mantissa = static_cast<float>(static_cast<int32_t>(random()));
      values[static_cast<size_t>(range.begin + i)] =
          random() % 11 == 0 ? 0.0f : std::ldexp(mantissa, -31 - static_cast<int>(random() % 24));
    }
  }
  return values;
}

// A run in device memory, with its contents on the host.
template <typename T>
class DeviceRun {
 public:
  DeviceRun(Device& device, Stream& stream, const std::vector<T>& values) : stream_(stream), size_(values.size()) {
    buffer_ = *device.Allocate(std::max<size_t>(values.size(), 1) * sizeof(T));
    Write(values);
  }
  void Write(const std::vector<T>& values) {
    REQUIRE(stream_
                .CopyToDevice(buffer_->address(), reinterpret_cast<const std::byte*>(values.data()),
                              values.size() * sizeof(T))
                .ok());
    REQUIRE(stream_.Synchronize().ok());
  }
  std::vector<T> Read() {
    std::vector<T> values(size_);
    REQUIRE(
        stream_.CopyToHost(reinterpret_cast<std::byte*>(values.data()), buffer_->address(), size_ * sizeof(T)).ok());
    REQUIRE(stream_.Synchronize().ok());
    return values;
  }
  T* at() { return reinterpret_cast<T*>(buffer_->address()); }

 private:
  Stream& stream_;
  const size_t size_;
  std::unique_ptr<device::Buffer> buffer_;
};

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <typename T>
absl::Span<T> Part(std::vector<T>& run, const TensorRange& range) {
  return absl::MakeSpan(run).subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size));
}

}  // namespace

void CheckExactSums(Device& device) {
  StepMath& math = device.step_math();
  const auto stream = *device.NewStream();
  const auto table = *math.MakeTensorTable(Ranges());
  std::vector<float> first = Values(1), second = Values(2);
  first[static_cast<size_t>(Ranges()[3].begin + 17)] = std::numeric_limits<float>::infinity();
  std::vector<int32_t> exponents = {-48, -50, device::kExponentUnset, -47, -60, -48, -49, -46};
  // What lies between tensors keeps its value.
  std::vector<int64_t> sums(static_cast<size_t>(RunSize()), 77);
  std::vector<uint32_t> magnitudes(kSizes.size(), 0);
  magnitudes[1] = std::bit_cast<uint32_t>(1e30f);  // larger than all that comes
  std::vector<float> floats(static_cast<size_t>(RunSize()), 5.0f);
  DeviceRun<float> values(device, *stream, first), out(device, *stream, floats);
  DeviceRun<float> more(device, *stream, second);
  DeviceRun<int32_t> scales(device, *stream, exponents);
  DeviceRun<int64_t> total(device, *stream, sums);
  DeviceRun<uint32_t> largest(device, *stream, magnitudes), only(device, *stream, magnitudes);

  REQUIRE(math.Quantize(*stream, *table, Accumulate::kStore, values.at(), scales.at(), total.at(), largest.at()).ok());
  REQUIRE(math.Quantize(*stream, *table, Accumulate::kAdd, more.at(), scales.at(), total.at(), largest.at()).ok());
  REQUIRE(math.FindMagnitudes(*stream, *table, values.at(), only.at()).ok());
  REQUIRE(math.FindMagnitudes(*stream, *table, more.at(), only.at()).ok());
  for (const TensorRange& range : Ranges()) {
    const auto index = static_cast<size_t>(range.index);
    const uint32_t stored = worker::QuantizeStore(Part(first, range), exponents[index], Part(sums, range));
    const uint32_t added = worker::QuantizeAdd(Part(second, range), exponents[index], Part(sums, range));
    magnitudes[index] = std::max({magnitudes[index], stored, added});
  }
  CHECK(SameBits(total.Read(), sums));
  CHECK(largest.Read() == magnitudes);
  CHECK(only.Read() == magnitudes);

  // Sums of 4,096 shards do not fit a double: what lies beyond its last bit decides ties. In two parts that cut a
  // tensor, so that the second must not touch what the first wrote.
  std::mt19937_64 random(3);
  for (int64_t& sum : sums) sum = static_cast<int64_t>(random()) >> (1 + random() % 20);
  total.Write(sums);
  const int64_t cut = Ranges()[5].begin + 1008;
  for (const int64_t begin : {int64_t{0}, cut}) {
    const int64_t end = begin == 0 ? cut : RunSize();
    REQUIRE(math.Dequantize(*stream, *table, begin, end, total.at(), scales.at(), out.at()).ok());
    for (const TensorRange& range : Ranges()) {
      const int64_t first_element = std::max(begin, range.begin);
      const TensorRange part{.begin = first_element,
                             .size = std::max<int64_t>(std::min(end, range.begin + range.size) - first_element, 0)};
      if (part.size == 0) continue;
      worker::Dequantize(Part(sums, part), exponents[static_cast<size_t>(range.index)], Part(floats, part));
    }
    CHECK(SameBits(out.Read(), floats));
  }
}

void CheckFloatSums(Device& device) {
  StepMath& math = device.step_math();
  const auto stream = *device.NewStream();
  const auto table = *math.MakeTensorTable(Ranges());
  std::vector<float> first = Values(1), second = Values(2);
  std::vector<float> expected(first.size(), 3.0f);
  DeviceRun<float> one(device, *stream, first), two(device, *stream, second), sums(device, *stream, expected);

  REQUIRE(math.AddFloats(*stream, *table, Accumulate::kStore, one.at(), sums.at()).ok());
  REQUIRE(math.AddFloats(*stream, *table, Accumulate::kAdd, two.at(), sums.at()).ok());

  for (const TensorRange& range : Ranges()) {
    for (auto i = static_cast<size_t>(range.begin); i < static_cast<size_t>(range.begin + range.size); ++i) {
      expected[i] = first[i] + second[i];
    }
  }
  CHECK(SameBits(sums.Read(), expected));
}

void CheckClip(Device& device) {
  StepMath& math = device.step_math();
  const auto stream = *device.NewStream();
  const auto table = *math.MakeTensorTable(Ranges());
  std::vector<float> gradients = Values(4);
  DeviceRun<float> values(device, *stream, gradients);
  DeviceRun<double> squares(device, *stream, std::vector<double>(kSizes.size(), -1.0));
  DeviceRun<float> clip(device, *stream, {-1.0f, -1.0f});

  REQUIRE(math.SumSquares(*stream, *table, values.at(), squares.at()).ok());
  std::vector<double> found = squares.Read();
  for (const TensorRange& range : Ranges()) {
    // Any order within a block is good to some last bits of float64.
    const double expected = worker::SumOfSquares(Part(gradients, range));
    CHECK(found[static_cast<size_t>(range.index)] == Approx(expected).epsilon(1e-12));
  }
  REQUIRE(math.SumSquares(*stream, *table, values.at(), squares.at()).ok());
  CHECK(SameBits(squares.Read(), found));

  const auto count = static_cast<int64_t>(found.size());
  REQUIRE(math.FindClip(*stream, squares.at(), count, 64.0, 1e-3, clip.at()).ok());
  REQUIRE(math.FindClip(*stream, squares.at(), count, 64.0, 1e30, clip.at() + 1).ok());
  double sum = 0;
  for (const double square : found) sum += square;
  const std::vector<float> factors = clip.Read();
  CHECK(factors[0] == static_cast<float>(1e-3 / (std::sqrt(sum) / 64.0 + 1e-6)));
  CHECK(factors[0] < 1.0f);
  CHECK(factors[1] == 1.0f);
}

std::vector<UpdateFormula> Formulas() {
  using Kind = UpdateFormula::Kind;
  return {UpdateFormula{},
          UpdateFormula{.decays = true},
          UpdateFormula{.momentum = true},
          UpdateFormula{.decays = true, .momentum = true, .nesterov = true},
          UpdateFormula{.kind = Kind::kAdam},
          UpdateFormula{.kind = Kind::kAdam, .decays = true},
          UpdateFormula{.kind = Kind::kRmsProp},
          UpdateFormula{.kind = Kind::kRmsProp, .decays = true},
          UpdateFormula{.kind = Kind::kRmsProp, .momentum = true},
          UpdateFormula{.kind = Kind::kRmsProp, .decays = true, .momentum = true},
          UpdateFormula{.kind = Kind::kAdagrad},
          UpdateFormula{.kind = Kind::kAdagrad, .decays = true},
          UpdateFormula{.kind = Kind::kLion},
          UpdateFormula{.kind = Kind::kLamb},
          UpdateFormula{.kind = Kind::kAdafactor}};
}

// Of kSizes: one and several matrices, rows and columns around a warp and a block of rows, and vectors.
const std::vector<device::TrailingMatrix> kMatrices = {{1, 1},  {},        {3, 11}, {273, 15},
                                                       {2, 64}, {17, 241}, {},      {3, 113}};

// What updates work on: value, gradient, both slots, average.
using UpdateRuns = std::array<std::vector<float>, 5>;

UpdateRuns RunsFor(const UpdateFormula& formula) {
  using Kind = UpdateFormula::Kind;
  UpdateRuns runs = {Values(5), Values(6), Values(7), Values(8), Values(9)};
  const auto make_squares = [](std::vector<float>& run) {
    for (float& square : run) square = std::fabs(square);
  };
  const bool begins_with_squares =
      formula.kind == Kind::kRmsProp || formula.kind == Kind::kAdagrad || formula.kind == Kind::kAdafactor;
  if (begins_with_squares) make_squares(runs[2]);
  if (!begins_with_squares || formula.kind == Kind::kAdafactor) make_squares(runs[3]);
  return runs;
}

// The slots of a parameter of that shape.
int SlotsOf(const UpdateFormula& formula, const device::TrailingMatrix& shape) {
  using Kind = UpdateFormula::Kind;
  switch (formula.kind) {
    case Kind::kSgd:
      return formula.momentum ? 1 : 0;
    case Kind::kRmsProp:
      return formula.momentum ? 2 : 1;
    case Kind::kAdagrad:
    case Kind::kLion:
      return 1;
    case Kind::kAdafactor:
      return shape.columns > 0 ? 2 : 1;
    case Kind::kAdam:
    case Kind::kLamb:
      return 2;
  }
  return 0;
}

std::vector<device::UpdateTensor> TensorsOf(const UpdateFormula& formula, const std::array<float*, 5>& runs,
                                            bool averages) {
  std::vector<device::UpdateTensor> tensors;
  for (size_t t = 0; t < kSizes.size(); ++t) {
    const TensorRange range = Ranges()[t];
    const int slots = SlotsOf(formula, kMatrices[t]);
    tensors.push_back(
        {.size = range.size,
         .value = runs[0] + range.begin,
         .gradient = runs[1] + range.begin,
         .slots = {slots > 0 ? runs[2] + range.begin : nullptr, slots > 1 ? runs[3] + range.begin : nullptr},
         .average = averages ? runs[4] + range.begin : nullptr,
         .decays = range.index % 2 == 0,
         .shape = kMatrices[t]});
  }
  return tensors;
}

void UpdateOnHost(const UpdateFormula& formula, const UpdateScalars& scalars, UpdateRuns& runs, bool averages) {
  const std::array<float*, 5> at = {runs[0].data(), runs[1].data(), runs[2].data(), runs[3].data(), runs[4].data()};
  for (const device::UpdateTensor& tensor : TensorsOf(formula, at, averages)) {
    worker::UpdateElements(formula, tensor.decays ? scalars : device::WithoutDecay(scalars),
                           {.count = tensor.size,
                            .value = tensor.value,
                            .gradient = tensor.gradient,
                            .slots = {tensor.slots[0], tensor.slots[1]},
                            .average = tensor.average,
                            .shape = tensor.shape});
  }
}

void CheckUpdates(Device& device) {
  StepMath& math = device.step_math();
  const auto stream = *device.NewStream();
  const UpdateScalars scalars{.denominator = 48,
                              .clip = 0.75f,
                              .weight_decay = 0.01f,
                              .lr = 0.1f,
                              .momentum = 0.9f,
                              .decay = 0.999f,
                              .beta1 = 0.9f,
                              .one_minus_beta1 = 0.1f,
                              .beta2 = 0.999f,
                              .one_minus_beta2 = 0.001f,
                              .step_size = 0.02f,
                              .correction2 = 0.05f,
                              .epsilon = 1e-8f,
                              .least_square = 1e-16f,
                              .min_scale = 1e-3f,
                              .max_rms = 0.5f,
                              .average_rate = 0.125f};
  for (const UpdateFormula formula : Formulas()) {
    for (const int averages : {0, 1, 2}) {  // none, moved, copied
      CAPTURE(static_cast<int>(formula.kind), formula.decays, formula.momentum, formula.nesterov, averages);
      UpdateScalars now = scalars;
      now.copies_average = averages == 2;
      UpdateRuns host = RunsFor(formula);
      std::vector<DeviceRun<float>> runs;
      for (const auto& run : host) runs.emplace_back(device, *stream, run);
      DeviceRun<float> clip(device, *stream, {0.5f});
      const std::array<float*, 5> at = {runs[0].at(), runs[1].at(), runs[2].at(), runs[3].at(), runs[4].at()};
      const auto table = *math.MakeUpdateTable(formula, TensorsOf(formula, at, averages != 0));

      REQUIRE(math.Update(*stream, *table, now, nullptr).ok());
      REQUIRE(math.Update(*stream, *table, now, clip.at()).ok());

      for (const float factor : {now.clip, 0.5f}) {
        now.clip = factor;
        UpdateOnHost(formula, now, host, averages != 0);
      }
      for (size_t i = 0; i < host.size(); ++i) {
        CAPTURE(i);
        CHECK(SameBits(runs[i].Read(), host[i]));
      }
    }
  }
}

void CheckStatisticsAndOutputs(Device& device) {
  StepMath& math = device.step_math();
  const auto stream = *device.NewStream();
  std::vector<float> host = Values(10);
  DeviceRun<float> run(device, *stream, host);
  std::vector<device::PassOutput> outputs;
  std::vector<device::StatisticTensor> statistics;
  std::vector<double> totals;
  for (const TensorRange& range : Ranges()) {
    outputs.push_back({.size = range.size, .values = run.at() + range.begin, .divisor = range.index + 1.0});
    statistics.push_back({.size = range.size, .running = run.at() + range.begin, .momentum = 0.9});
    totals.resize(totals.size() + static_cast<size_t>(range.size), 0.25);
  }
  DeviceRun<double> sums(device, *stream, totals);
  const auto output_table = *math.MakeOutputTable(outputs);
  const auto statistic_table = *math.MakeStatisticTable(statistics);

  REQUIRE(math.AddOutputs(*stream, *output_table, sums.at()).ok());
  REQUIRE(math.MoveStatistics(*stream, *statistic_table, sums.at()).ok());

  size_t at = 0;
  for (const TensorRange& range : Ranges()) {
    for (float& value : Part(host, range)) {
      totals[at] += value / (range.index + 1.0);
      value = device::MovedStatistic(0.9, value, totals[at]);
      ++at;
    }
  }
  CHECK(SameBits(sums.Read(), totals));
  CHECK(SameBits(run.Read(), host));
}

}  // namespace lockstep
