#include "worker/device/cuda/step_math.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/status/status_macros.h"
#include "worker/device/cuda/norm_updates.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/device/cuda/step_kernels.h"
#include "worker/device/cuda/uploaded_rows.h"

namespace lockstep::device::cuda {
namespace {

class CudaTensors final : public TensorTable {
 public:
  static absl::StatusOr<std::unique_ptr<TensorTable>> Make(absl::Span<const TensorRange> ranges) {
    auto table = std::make_unique<CudaTensors>();
    std::vector<ChunkRange> tensors;
    for (const TensorRange& range : ranges) {
      const auto first = static_cast<int32_t>(table->on_host.size());
      ForEachChunk(range.size, [&](int64_t at, int32_t size) {
        table->on_host.push_back({range.begin + at, size, range.index});
      });
      tensors.push_back({first, static_cast<int32_t>(table->on_host.size()), range.index});
    }
    LS_ASSIGN_OR_RETURN(table->chunks, UploadedRows<RunChunk>::Upload(table->on_host));
    LS_ASSIGN_OR_RETURN(table->tensors, UploadedRows<ChunkRange>::Upload(tensors));
    LS_ASSIGN_OR_RETURN(table->found, NewDeviceBuffer(table->on_host.size() * sizeof(double)));
    return table;
  }

  template <typename T>
  T* found_by_chunk() const {
    return reinterpret_cast<T*>(found->address());
  }

  std::vector<RunChunk> on_host;
  UploadedRows<RunChunk> chunks;
  UploadedRows<ChunkRange> tensors;
  std::unique_ptr<Buffer> found;  // one value per chunk, between two launches
};

class CudaUpdates final : public UpdateTable {
 public:
  UpdateFormula formula;
  UploadedRows<UpdateChunk> chunks;
  std::optional<NormUpdates> by_norms;  // then the chunks are empty
};

// Tensors, and where each begins in a run of all of their elements.
template <typename Table, typename Row>
class CudaRun final : public Table {
 public:
  static absl::StatusOr<std::unique_ptr<Table>> Make(absl::Span<const Row> rows) {
    auto table = std::make_unique<CudaRun>();
    std::vector<int64_t> offsets;
    int64_t offset = 0;
    for (const Row& row : rows) {
      offsets.push_back(offset);
      offset += row.size;
    }
    LS_ASSIGN_OR_RETURN(table->rows, UploadedRows<Row>::Upload(rows));
    LS_ASSIGN_OR_RETURN(table->offsets, UploadedRows<int64_t>::Upload(offsets));
    return table;
  }
  UploadedRows<Row> rows;
  UploadedRows<int64_t> offsets;
};
using CudaStatistics = CudaRun<StatisticTable, StatisticTensor>;
using CudaOutputs = CudaRun<OutputTable, PassOutput>;

const CudaTensors& Of(const TensorTable& table) { return static_cast<const CudaTensors&>(table); }

using UpdateLaunch = void (*)(const UpdateChunk*, UpdateScalars, const float*);

template <bool kDecays>
UpdateLaunch KernelBy(const UpdateFormula& f) {
  switch (f.kind) {
    case UpdateFormula::Kind::kSgd:
      if (!f.momentum) return &UpdateKernel<SgdFormula<kDecays, false, false>>;
      return f.nesterov ? &UpdateKernel<SgdFormula<kDecays, true, true>>
                        : &UpdateKernel<SgdFormula<kDecays, true, false>>;
    case UpdateFormula::Kind::kAdam:
      return &UpdateKernel<AdamFormula<kDecays>>;
    case UpdateFormula::Kind::kRmsProp:
      return f.momentum ? &UpdateKernel<RmsPropFormula<kDecays, true>> : &UpdateKernel<RmsPropFormula<kDecays, false>>;
    case UpdateFormula::Kind::kAdagrad:
      return &UpdateKernel<AdagradFormula<kDecays>>;
    case UpdateFormula::Kind::kLion:
      return &UpdateKernel<LionFormula>;
    case UpdateFormula::Kind::kLamb:
    case UpdateFormula::Kind::kAdafactor:
      break;  // by norms
  }
  return nullptr;
}

UpdateLaunch KernelOf(const UpdateFormula& f) { return f.decays ? KernelBy<true>(f) : KernelBy<false>(f); }

class CudaStepMath final : public StepMath {
 public:
  absl::StatusOr<std::unique_ptr<TensorTable>> MakeTensorTable(absl::Span<const TensorRange> ranges) override {
    return CudaTensors::Make(ranges);
  }

  absl::StatusOr<std::unique_ptr<UpdateTable>> MakeUpdateTable(const UpdateFormula& formula,
                                                               absl::Span<const UpdateTensor> tensors) override {
    auto table = std::make_unique<CudaUpdates>();
    table->formula = formula;
    if (GoesByNorms(formula)) {
      LS_ASSIGN_OR_RETURN(table->by_norms, NormUpdates::Make(formula, tensors));
      return table;
    }
    std::vector<UpdateChunk> chunks;
    for (const UpdateTensor& tensor : tensors) {
      const auto part = [](auto* run, int64_t at) { return run == nullptr ? nullptr : run + at; };
      ForEachChunk(tensor.size, [&](int64_t at, int32_t size) {
        chunks.push_back({.value = tensor.value + at,
                          .gradient = tensor.gradient + at,
                          .slots = {part(tensor.slots[0], at), part(tensor.slots[1], at)},
                          .average = part(tensor.average, at),
                          .size = size,
                          .decays = tensor.decays});
      });
    }
    LS_ASSIGN_OR_RETURN(table->chunks, UploadedRows<UpdateChunk>::Upload(chunks));
    return table;
  }

  absl::StatusOr<std::unique_ptr<StatisticTable>> MakeStatisticTable(
      absl::Span<const StatisticTensor> tensors) override {
    return CudaStatistics::Make(tensors);
  }
  absl::StatusOr<std::unique_ptr<OutputTable>> MakeOutputTable(absl::Span<const PassOutput> outputs) override {
    return CudaOutputs::Make(outputs);
  }

  absl::Status Quantize(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                        const int32_t* exponents, int64_t* sums, uint32_t* magnitudes) override {
    const CudaTensors& table = Of(tensors);
    if (table.chunks.count() == 0) return absl::OkStatus();
    const auto kernel = accumulate == Accumulate::kStore ? &QuantizeKernel<false> : &QuantizeKernel<true>;
    LS_RETURN_IF_ERROR(Launch(HandleOf(stream), table.chunks.one_block_each(), kernel, table.chunks.get(), values,
                              exponents, sums, table.found_by_chunk<uint32_t>()));
    return KeepLargest(stream, table, magnitudes);
  }

  absl::Status FindMagnitudes(Stream& stream, const TensorTable& tensors, const float* values,
                              uint32_t* magnitudes) override {
    const CudaTensors& table = Of(tensors);
    if (table.chunks.count() == 0) return absl::OkStatus();
    LS_RETURN_IF_ERROR(Launch(HandleOf(stream), table.chunks.one_block_each(), &MagnitudesKernel, table.chunks.get(),
                              values, table.found_by_chunk<uint32_t>()));
    return KeepLargest(stream, table, magnitudes);
  }

  absl::Status Dequantize(Stream& stream, const TensorTable& tensors, int64_t begin, int64_t end, const int64_t* sums,
                          const int32_t* exponents, float* values) override {
    const CudaTensors& table = Of(tensors);
    const auto& chunks = table.on_host;
    const auto first = std::partition_point(chunks.begin(), chunks.end(),
                                            [&](const RunChunk& c) { return c.begin + c.size <= begin; });
    const auto last = std::partition_point(first, chunks.end(), [&](const RunChunk& c) { return c.begin < end; });
    if (first == last) return absl::OkStatus();
    const LaunchShape shape{.blocks = {static_cast<unsigned>(last - first)}, .threads = {kStepThreads}};
    return Launch(HandleOf(stream), shape, &DequantizeKernel, table.chunks.get() + (first - chunks.begin()), begin, end,
                  sums, exponents, values);
  }

  absl::Status AddFloats(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                         float* sums) override {
    const CudaTensors& table = Of(tensors);
    if (table.chunks.count() == 0) return absl::OkStatus();
    const auto kernel = accumulate == Accumulate::kStore ? &AddFloatsKernel<false> : &AddFloatsKernel<true>;
    return Launch(HandleOf(stream), table.chunks.one_block_each(), kernel, table.chunks.get(), values, sums);
  }

  absl::Status SumSquares(Stream& stream, const TensorTable& tensors, const float* values, double* sums) override {
    const CudaTensors& table = Of(tensors);
    if (table.chunks.count() == 0) return absl::OkStatus();
    LS_RETURN_IF_ERROR(Launch(HandleOf(stream), table.chunks.one_block_each(), &SquaresKernel, table.chunks.get(),
                              values, table.found_by_chunk<double>()));
    const int64_t count = table.tensors.count();
    return Launch(HandleOf(stream), {.blocks = {BlocksFor(count)}, .threads = {kBlock}}, &SumSquaresKernel,
                  table.tensors.get(), count, table.found_by_chunk<double>(), sums);
  }

  absl::Status FindClip(Stream& stream, const double* sums, int64_t count, double denominator, double max_norm,
                        float* clip) override {
    return Launch(HandleOf(stream), LaunchShape(), &FindClipKernel, sums, count, denominator, max_norm, clip);
  }

  absl::Status Update(Stream& stream, const UpdateTable& tensors, const UpdateScalars& scalars,
                      const float* clip) override {
    const auto& table = static_cast<const CudaUpdates&>(tensors);
    if (table.by_norms.has_value()) return table.by_norms->Queue(HandleOf(stream), scalars, clip);
    const UploadedRows<UpdateChunk>& chunks = table.chunks;
    if (chunks.count() == 0) return absl::OkStatus();
    return Launch(HandleOf(stream), chunks.one_block_each(), KernelOf(table.formula), chunks.get(), scalars, clip);
  }

  absl::Status MoveStatistics(Stream& stream, const StatisticTable& tensors, const double* means) override {
    const auto& table = static_cast<const CudaStatistics&>(tensors);
    if (table.rows.count() == 0) return absl::OkStatus();
    return Launch(HandleOf(stream), table.rows.one_block_each(), &MoveStatisticsKernel, table.rows.get(),
                  table.offsets.get(), means);
  }

  absl::Status AddOutputs(Stream& stream, const OutputTable& outputs, double* totals) override {
    const auto& table = static_cast<const CudaOutputs&>(outputs);
    if (table.rows.count() == 0) return absl::OkStatus();
    return Launch(HandleOf(stream), table.rows.one_block_each(), &AddOutputsKernel, table.rows.get(),
                  table.offsets.get(), totals);
  }

 private:
  static absl::Status KeepLargest(Stream& stream, const CudaTensors& table, uint32_t* magnitudes) {
    return Launch(HandleOf(stream), table.tensors.one_block_each(), &LargestKernel, table.tensors.get(),
                  table.found_by_chunk<uint32_t>(), magnitudes);
  }
};

}  // namespace

std::unique_ptr<StepMath> NewCudaStepMath() { return std::make_unique<CudaStepMath>(); }

}  // namespace lockstep::device::cuda
