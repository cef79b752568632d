#include "worker/account/written_step_math.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/account/written_device.h"

namespace lockstep::worker {
namespace {

using device::Accumulate;
using device::OutputTable;
using device::StatisticTable;
using device::Stream;
using device::TensorTable;
using device::UpdateTable;

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kInteger = sizeof(int64_t);
constexpr int64_t kDouble = sizeof(double);

// A table of the arithmetic inside, and how many elements it has. `bytes`: what one use of it moves, where that depends
// on more.
template <typename Table>
struct WrittenTable final : Table {
  std::unique_ptr<Table> inner;
  int64_t elements = 0;
  int64_t bytes = 0;
};

template <typename Table>
const WrittenTable<Table>& Of(const Table& table) {
  return static_cast<const WrittenTable<Table>&>(table);
}

template <typename Table, typename Rows>
absl::StatusOr<std::unique_ptr<WrittenTable<Table>>> Wrap(absl::StatusOr<std::unique_ptr<Table>> inner, Rows rows) {
  LS_RETURN_IF_ERROR(inner.status());
  auto table = std::make_unique<WrittenTable<Table>>();
  table->inner = *std::move(inner);
  for (const auto& row : rows) table->elements += row.size;
  return table;
}

// What an update moves per element of a parameter.
int64_t FloatsOf(const device::UpdateFormula& formula, const device::UpdateTensor& tensor) {
  // The average is read and written.
  const int64_t average = tensor.average != nullptr ? 2 : 0;
  // Gradients for means of rows, means of columns, the size of the step, and the step; values for the latter two, and
  // written. Slots of matrices are small.
  if (formula.kind == device::UpdateFormula::Kind::kAdafactor) return (tensor.shape.columns > 0 ? 7 : 8) + average;
  // A value is read and written, its gradient read, each slot read and written.
  int64_t floats = 3 + average;
  for (const float* const kept : {tensor.slots[0], tensor.slots[1]}) floats += kept != nullptr ? 2 : 0;
  // All but the gradient is read once more when the size of the step is known.
  return floats + (formula.kind == device::UpdateFormula::Kind::kLamb ? 3 : 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorTable>> WrittenStepMath::MakeTensorTable(
    absl::Span<const device::TensorRange> ranges) {
  return Wrap(inner_->MakeTensorTable(ranges), ranges);
}

absl::StatusOr<std::unique_ptr<UpdateTable>> WrittenStepMath::MakeUpdateTable(
    const device::UpdateFormula& formula, absl::Span<const device::UpdateTensor> tensors) {
  LS_ASSIGN_OR_RETURN(auto table, Wrap(inner_->MakeUpdateTable(formula, tensors), tensors));
  for (const device::UpdateTensor& tensor : tensors) table->bytes += FloatsOf(formula, tensor) * kFloat * tensor.size;
  return table;
}

absl::StatusOr<std::unique_ptr<StatisticTable>> WrittenStepMath::MakeStatisticTable(
    absl::Span<const device::StatisticTensor> tensors) {
  return Wrap(inner_->MakeStatisticTable(tensors), tensors);
}

absl::StatusOr<std::unique_ptr<OutputTable>> WrittenStepMath::MakeOutputTable(
    absl::Span<const device::PassOutput> outputs) {
  return Wrap(inner_->MakeOutputTable(outputs), outputs);
}

absl::Status WrittenStepMath::Queue(Stream& stream, const std::string& op, int64_t bytes,
                                    const std::function<absl::Status(Stream& inner)>& call) {
  LS_ASSIGN_OR_RETURN(const int launches, CountLaunches(*counting_, call));
  if (launches == 0) return absl::OkStatus();
  const int work = tape_->FindCopy(op, Rate::kUpdate, bytes);
  tape_->work(work).kernel = "step";
  tape_->work(work).launches = launches;
  return QueueWork(stream, work);
}

absl::Status WrittenStepMath::Quantize(Stream& stream, const TensorTable& tensors, Accumulate accumulate,
                                       const float* values, const int32_t* exponents, int64_t* sums,
                                       uint32_t* magnitudes) {
  const int64_t each = kFloat + kInteger * (accumulate == Accumulate::kAdd ? 2 : 1);
  return Queue(stream, "(quantise)", each * Of(tensors).elements, [&](Stream& inner) {
    return inner_->Quantize(inner, *Of(tensors).inner, accumulate, values, exponents, sums, magnitudes);
  });
}

absl::Status WrittenStepMath::FindMagnitudes(Stream& stream, const TensorTable& tensors, const float* values,
                                             uint32_t* magnitudes) {
  return Queue(stream, "(magnitudes)", kFloat * Of(tensors).elements,
               [&](Stream& inner) { return inner_->FindMagnitudes(inner, *Of(tensors).inner, values, magnitudes); });
}

absl::Status WrittenStepMath::Dequantize(Stream& stream, const TensorTable& tensors, int64_t begin, int64_t end,
                                         const int64_t* sums, const int32_t* exponents, float* values) {
  return Queue(stream, "(convert sums)", (kInteger + kFloat) * (end - begin), [&](Stream& inner) {
    return inner_->Dequantize(inner, *Of(tensors).inner, begin, end, sums, exponents, values);
  });
}

absl::Status WrittenStepMath::AddFloats(Stream& stream, const TensorTable& tensors, Accumulate accumulate,
                                        const float* values, float* sums) {
  const int64_t each = kFloat * (accumulate == Accumulate::kAdd ? 3 : 2);
  return Queue(stream, "(add gradients)", each * Of(tensors).elements,
               [&](Stream& inner) { return inner_->AddFloats(inner, *Of(tensors).inner, accumulate, values, sums); });
}

absl::Status WrittenStepMath::SumSquares(Stream& stream, const TensorTable& tensors, const float* values,
                                         double* sums) {
  return Queue(stream, "(squares)", kFloat * Of(tensors).elements,
               [&](Stream& inner) { return inner_->SumSquares(inner, *Of(tensors).inner, values, sums); });
}

absl::Status WrittenStepMath::FindClip(Stream& stream, const double* sums, int64_t count, double denominator,
                                       double max_norm, float* clip) {
  return Queue(stream, "(clip)", kDouble * count,
               [&](Stream& inner) { return inner_->FindClip(inner, sums, count, denominator, max_norm, clip); });
}

absl::Status WrittenStepMath::Update(Stream& stream, const UpdateTable& tensors, const device::UpdateScalars& scalars,
                                     const float* clip) {
  return Queue(stream, "(update)", Of(tensors).bytes,
               [&](Stream& inner) { return inner_->Update(inner, *Of(tensors).inner, scalars, clip); });
}

absl::Status WrittenStepMath::MoveStatistics(Stream& stream, const StatisticTable& tensors, const double* means) {
  return Queue(stream, "(statistics)", (2 * kFloat + kDouble) * Of(tensors).elements,
               [&](Stream& inner) { return inner_->MoveStatistics(inner, *Of(tensors).inner, means); });
}

absl::Status WrittenStepMath::AddOutputs(Stream& stream, const OutputTable& outputs, double* totals) {
  return Queue(stream, "(add outputs)", (kFloat + 2 * kDouble) * Of(outputs).elements,
               [&](Stream& inner) { return inner_->AddOutputs(inner, *Of(outputs).inner, totals); });
}

}  // namespace lockstep::worker
