#include "worker/device/host/host_step_math.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/arithmetic/element_update.h"
#include "worker/arithmetic/exact_sum.h"

namespace lockstep::device {
namespace {

// A table is what it was made from; of updates with their formula.
template <typename Table, typename Row>
class HostTable final : public Table {
 public:
  explicit HostTable(absl::Span<const Row> rows) : rows_(rows.begin(), rows.end()) {}
  const std::vector<Row>& rows() const { return rows_; }

 private:
  const std::vector<Row> rows_;
};
using HostTensors = HostTable<TensorTable, TensorRange>;
class HostUpdates final : public UpdateTable {
 public:
  HostUpdates(const UpdateFormula& formula, absl::Span<const UpdateTensor> rows)
      : formula_(formula), rows_(rows.begin(), rows.end()) {}
  const UpdateFormula& formula() const { return formula_; }
  const std::vector<UpdateTensor>& rows() const { return rows_; }

 private:
  const UpdateFormula formula_;
  const std::vector<UpdateTensor> rows_;
};
using HostStatistics = HostTable<StatisticTable, StatisticTensor>;
using HostOutputs = HostTable<OutputTable, PassOutput>;

template <typename Host, typename Table>
const auto& RowsOf(const Table& table) {
  return static_cast<const Host&>(table).rows();
}

template <typename T>
absl::Span<T> Part(T* run, const TensorRange& range) {
  return {run + range.begin, static_cast<size_t>(range.size)};
}

class HostStepMath final : public StepMath {
 public:
  absl::StatusOr<std::unique_ptr<TensorTable>> MakeTensorTable(absl::Span<const TensorRange> ranges) override {
    return std::make_unique<HostTensors>(ranges);
  }
  absl::StatusOr<std::unique_ptr<UpdateTable>> MakeUpdateTable(const UpdateFormula& formula,
                                                               absl::Span<const UpdateTensor> tensors) override {
    return std::make_unique<HostUpdates>(formula, tensors);
  }
  absl::StatusOr<std::unique_ptr<StatisticTable>> MakeStatisticTable(
      absl::Span<const StatisticTensor> tensors) override {
    return std::make_unique<HostStatistics>(tensors);
  }
  absl::StatusOr<std::unique_ptr<OutputTable>> MakeOutputTable(absl::Span<const PassOutput> outputs) override {
    return std::make_unique<HostOutputs>(outputs);
  }

  absl::Status Quantize(Stream&, const TensorTable& tensors, Accumulate accumulate, const float* values,
                        const int32_t* exponents, int64_t* sums, uint32_t* magnitudes) override {
    const auto quantize = accumulate == Accumulate::kStore ? &worker::QuantizeStore : &worker::QuantizeAdd;
    for (const TensorRange& range : RowsOf<HostTensors>(tensors)) {
      const uint32_t largest = quantize(Part(values, range), exponents[range.index], Part(sums, range));
      magnitudes[range.index] = std::max(magnitudes[range.index], largest);
    }
    return absl::OkStatus();
  }

  absl::Status FindMagnitudes(Stream&, const TensorTable& tensors, const float* values, uint32_t* magnitudes) override {
    for (const TensorRange& range : RowsOf<HostTensors>(tensors)) {
      magnitudes[range.index] = std::max(magnitudes[range.index], worker::LargestMagnitude(Part(values, range)));
    }
    return absl::OkStatus();
  }

  absl::Status Dequantize(Stream&, const TensorTable& tensors, int64_t begin, int64_t end, const int64_t* sums,
                          const int32_t* exponents, float* values) override {
    for (const TensorRange& range : RowsOf<HostTensors>(tensors)) {
      const int64_t first = std::max(begin, range.begin);
      const TensorRange part{.begin = first, .size = std::min(end, range.begin + range.size) - first};
      if (part.size > 0) worker::Dequantize(Part(sums, part), exponents[range.index], Part(values, part));
    }
    return absl::OkStatus();
  }

  absl::Status AddFloats(Stream&, const TensorTable& tensors, Accumulate accumulate, const float* values,
                         float* sums) override {
    for (const TensorRange& range : RowsOf<HostTensors>(tensors)) {
      const float* const from = values + range.begin;
      float* const to = sums + range.begin;
      if (accumulate == Accumulate::kStore) {
        std::copy_n(from, range.size, to);
      } else {
        for (int64_t i = 0; i < range.size; ++i) to[i] = to[i] + from[i];
      }
    }
    return absl::OkStatus();
  }

  absl::Status SumSquares(Stream&, const TensorTable& tensors, const float* values, double* sums) override {
    for (const TensorRange& range : RowsOf<HostTensors>(tensors)) {
      sums[range.index] = worker::SumOfSquares(Part(values, range));
    }
    return absl::OkStatus();
  }

  absl::Status FindClip(Stream&, const double* sums, int64_t count, double denominator, double max_norm,
                        float* clip) override {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += sums[i];
    *clip = ClipFactor(sum, denominator, max_norm);
    return absl::OkStatus();
  }

  absl::Status Update(Stream&, const UpdateTable& tensors, const UpdateScalars& scalars, const float* clip) override {
    UpdateScalars decaying = scalars;
    if (clip != nullptr) decaying.clip = *clip;
    const UpdateScalars keeping = WithoutDecay(decaying);
    const UpdateFormula& formula = static_cast<const HostUpdates&>(tensors).formula();
    for (const UpdateTensor& tensor : RowsOf<HostUpdates>(tensors)) {
      worker::UpdateElements(formula, tensor.decays ? decaying : keeping,
                             {.count = tensor.size,
                              .value = tensor.value,
                              .gradient = tensor.gradient,
                              .slots = {tensor.slots[0], tensor.slots[1]},
                              .average = tensor.average,
                              .shape = tensor.shape});
    }
    return absl::OkStatus();
  }

  absl::Status MoveStatistics(Stream&, const StatisticTable& tensors, const double* means) override {
    for (const StatisticTensor& tensor : RowsOf<HostStatistics>(tensors)) {
      for (int64_t i = 0; i < tensor.size; ++i) {
        tensor.running[i] = MovedStatistic(tensor.momentum, tensor.running[i], *means++);
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs(Stream&, const OutputTable& outputs, double* totals) override {
    for (const PassOutput& output : RowsOf<HostOutputs>(outputs)) {
      for (int64_t i = 0; i < output.size; ++i) *totals++ += output.values[i] / output.divisor;
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<StepMath> MakeHostStepMath() { return std::make_unique<HostStepMath>(); }

}  // namespace lockstep::device
