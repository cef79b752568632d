// The table of an update that goes by norms, with the memory for its sums, and the launches of such an update. For
// step_math.cc, which is compiled with the kernels.
//
// Threading: as step_math.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_NORM_UPDATES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_NORM_UPDATES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/norm_kernels.h"
#include "worker/device/cuda/uploaded_rows.h"

namespace lockstep::device::cuda {

class NormUpdates {
 public:
  // REQUIRES: `formula` goes by norms. ResourceExhausted names the size.
  static absl::StatusOr<NormUpdates> Make(const UpdateFormula& formula, absl::Span<const UpdateTensor> tensors) {
    NormUpdates updates;
    updates.factors_ = formula.kind == UpdateFormula::Kind::kAdafactor;
    Rows rows;
    for (const UpdateTensor& tensor : tensors) updates.AddTensor(tensor, rows);
    // Sums of float64 come first.
    const int64_t doubles = 2 * static_cast<int64_t>(rows.chunks.size()) + rows.column_sums;
    const int64_t floats = static_cast<int64_t>(rows.tensors.size()) + rows.row_means;
    LS_ASSIGN_OR_RETURN(updates.scratch_, NewDeviceBuffer(static_cast<size_t>(doubles) * sizeof(double) +
                                                          static_cast<size_t>(floats) * sizeof(float)));
    updates.scales_at_ = doubles;
    double* sums = updates.found() + 2 * rows.chunks.size();
    float* means = updates.scales() + rows.tensors.size();
    for (NormTensor& tensor : rows.tensors) {
      if (!updates.factors_ || tensor.shape.columns == 0) continue;
      tensor.row_means = means;
      means += tensor.size / (tensor.shape.rows * tensor.shape.columns);
      if (tensor.shape.rows <= kNormRows) continue;
      tensor.column_sums = sums;
      sums += ColumnSums(tensor);
    }
    LS_ASSIGN_OR_RETURN(updates.tensors_, UploadedRows<NormTensor>::Upload(rows.tensors));
    LS_ASSIGN_OR_RETURN(updates.chunks_, UploadedRows<NormChunk>::Upload(rows.chunks));
    LS_ASSIGN_OR_RETURN(updates.row_tiles_, UploadedRows<RowTile>::Upload(rows.row_tiles));
    LS_ASSIGN_OR_RETURN(updates.matrix_tiles_, UploadedRows<RowTile>::Upload(rows.matrix_tiles));
    LS_ASSIGN_OR_RETURN(updates.column_tiles_, UploadedRows<ColumnTile>::Upload(rows.column_tiles));
    LS_ASSIGN_OR_RETURN(updates.summed_tiles_, UploadedRows<ColumnTile>::Upload(rows.summed_tiles));
    return updates;
  }

  absl::Status Queue(StreamHandle stream, const UpdateScalars& scalars, const float* clip) const {
    if (chunks_.count() == 0) return absl::OkStatus();
    if (!factors_) return QueuePhases<LambFormula>(stream, scalars, clip);
    LS_RETURN_IF_ERROR(QueueMeans(stream, scalars, clip));
    return QueuePhases<AdafactorFormula>(stream, scalars, clip);
  }

 private:
  // What is uploaded, and how much memory it needs beside.
  struct Rows {
    std::vector<NormTensor> tensors;
    std::vector<NormChunk> chunks;
    std::vector<RowTile> row_tiles, matrix_tiles;
    std::vector<ColumnTile> column_tiles, summed_tiles;
    int64_t row_means = 0;
    int64_t column_sums = 0;
  };

  static int64_t RowBlocks(const NormTensor& tensor) { return (tensor.shape.rows + kNormRows - 1) / kNormRows; }
  static int64_t ColumnSums(const NormTensor& tensor) { return RowBlocks(tensor) * tensor.columns(); }

  void AddTensor(const UpdateTensor& tensor, Rows& rows) const {
    const auto t = static_cast<int32_t>(rows.tensors.size());
    NormTensor& row = rows.tensors.emplace_back(NormTensor{.size = tensor.size,
                                                           .shape = tensor.shape,
                                                           .value = tensor.value,
                                                           .gradient = tensor.gradient,
                                                           .slots = {tensor.slots[0], tensor.slots[1]},
                                                           .average = tensor.average,
                                                           .row_means = nullptr,
                                                           .column_sums = nullptr,
                                                           .first_chunk = static_cast<int32_t>(rows.chunks.size()),
                                                           .last_chunk = 0,
                                                           .decays = tensor.decays});
    ForEachChunk(tensor.size, [&](int64_t at, int32_t size) { rows.chunks.push_back({at, size, t}); });
    row.last_chunk = static_cast<int32_t>(rows.chunks.size());
    if (!factors_ || tensor.shape.columns == 0) return;
    const int64_t all_rows = tensor.size / tensor.shape.columns;
    ForEachPart(all_rows, kTileRows, [&](int64_t at, int32_t size) { rows.row_tiles.push_back({at, size, t}); });
    const int64_t matrices = all_rows / tensor.shape.rows;
    ForEachPart(matrices, kTileRows, [&](int64_t at, int32_t size) { rows.matrix_tiles.push_back({at, size, t}); });
    const bool summed = tensor.shape.rows > kNormRows;
    ForEachPart(row.columns(), kStepThreads, [&](int64_t at, int32_t) {
      for (int32_t b = 0; b < RowBlocks(row); ++b) rows.column_tiles.push_back({at, b, t});
      if (summed) rows.summed_tiles.push_back({at, 0, t});
    });
    rows.row_means += matrices;
    if (summed) rows.column_sums += ColumnSums(row);
  }

  absl::Status QueueMeans(StreamHandle stream, const UpdateScalars& scalars, const float* clip) const {
    if (row_tiles_.count() == 0) return absl::OkStatus();
    LS_RETURN_IF_ERROR(
        Launch(stream, row_tiles_.one_block_each(), &MoveRowsKernel, tensors_.get(), row_tiles_.get(), scalars, clip));
    LS_RETURN_IF_ERROR(Launch(stream, column_tiles_.one_block_each(), &ColumnsKernel, tensors_.get(),
                              column_tiles_.get(), scalars, clip));
    if (summed_tiles_.count() > 0) {
      LS_RETURN_IF_ERROR(Launch(stream, summed_tiles_.one_block_each(), &MoveColumnsKernel, tensors_.get(),
                                summed_tiles_.get(), scalars));
    }
    return Launch(stream, matrix_tiles_.one_block_each(), &RowMeansKernel, tensors_.get(), matrix_tiles_.get());
  }

  template <typename Formula>
  absl::Status QueuePhases(StreamHandle stream, const UpdateScalars& scalars, const float* clip) const {
    LS_RETURN_IF_ERROR(Launch(stream, chunks_.one_block_each(), &NormSquaresKernel<Formula>, tensors_.get(),
                              chunks_.get(), scalars, clip, found()));
    const int64_t count = tensors_.count();
    LS_RETURN_IF_ERROR(Launch(stream, {.blocks = {BlocksFor(count, kBlock, count)}, .threads = {kBlock}},
                              &NormScaleKernel<Formula>, tensors_.get(), count, scalars, found(), scales()));
    return Launch(stream, chunks_.one_block_each(), &NormStepKernel<Formula>, tensors_.get(), chunks_.get(), scalars,
                  clip, scales());
  }

  double* found() const { return reinterpret_cast<double*>(scratch_->address()); }
  float* scales() const { return reinterpret_cast<float*>(found() + scales_at_); }

  bool factors_ = false;  // adafactor
  UploadedRows<NormTensor> tensors_;
  UploadedRows<NormChunk> chunks_;
  UploadedRows<RowTile> row_tiles_, matrix_tiles_;
  UploadedRows<ColumnTile> column_tiles_, summed_tiles_;
  // Two sums of each chunk, sums of columns; then a scale of each tensor, means of rows.
  std::unique_ptr<Buffer> scratch_;
  int64_t scales_at_ = 0;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_NORM_UPDATES_H_
