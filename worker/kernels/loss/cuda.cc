// Losses of scores against labels, their gradients, and what is counted of them. Rows are labels, elements classes.
#include <limits>
#include <optional>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/exp_sum.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/row_kernels.h"
#include "worker/kernels/label_shapes.h"

namespace lockstep::device::cuda {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// What a row gives to the loss.
struct LossAndWeight {
  double loss;
  double weight;
};

// The rules about labels and weights, for losses.
struct RowLosses {
  RowLosses(const DeviceCall& call, int64_t classes)
      : labels(call, 1, call.attrs<CrossEntropyAttributes>().ignore_index, classes),
        weights(call.in<float>(2)),
        out(call.out<float>(0)),
        reduction(call.attrs<CrossEntropyAttributes>().reduction) {}

  // log_prob(c): the logarithm of the probability of class c in this row.
  template <typename LogProb>
  LS_HD LossAndWeight At(int64_t row, LogProb log_prob) const {
    const Labels::Label label = labels.at(row);
    if (label.ignored) return {0.0, 0.0};
    if (!label.valid) return {kNan, 1.0};
    const double weight = weights != nullptr ? double{weights[label.index]} : 1.0;
    return {-weight * log_prob(label.index), weight};
  }
  LS_HD void Finish(const LossAndWeight& total) const {
    out[0] = static_cast<float>(reduction == Reduction::kSum ? total.loss : total.loss / total.weight);
  }

  Labels labels;
  const float* weights;
  float* out;
  Reduction reduction;
};

// The loss from what each row gives.
struct TotalLoss {
  using Value = LossAndWeight;
  LS_HD Value First() const { return {0.0, 0.0}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const { return Join(value, rows[cell.i]); }
  LS_HD Value Join(const Value& a, const Value& b) const { return {a.loss + b.loss, a.weight + b.weight}; }
  LS_HD void Finish(int64_t, const Value& total) const { losses.Finish(total); }

  RowLosses losses;
  const LossAndWeight* rows;
};

template <typename T>
struct CrossEntropyRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    ExpSum sum = ExpSum::OfNothing();
    team.Each([&](const Cell& cell) { sum = sum.Plus(scores[cell.at]); });
    sum = team.FoldLanes(sum, [](const ExpSum& a, const ExpSum& b) { return ExpSum::Join(a, b); });
    if (log_prob != nullptr) {
      const float log_sum = Log(sum.sum);
      team.Each([&](const Cell& cell) { return scores[cell.at]; },
                [&](const Cell& cell, float x) { log_prob[cell.at] = (x - sum.largest) - log_sum; });
    }
    if (!team.leads()) return;
    if (statistics != nullptr) {
      statistics[2 * team.row()] = sum.largest;
      statistics[2 * team.row() + 1] = Log(sum.sum);
    }
    const LossAndWeight row = losses.At(team.row(), [&](int64_t c) {
      const double log_total = double{sum.largest} + Log(double{sum.sum});
      return double{float{scores[team.At(static_cast<int>(c))]}} - log_total;
    });
    if (losses.reduction == Reduction::kNone) {
      losses.out[team.row()] = static_cast<float>(row.loss);
    } else {
      rows[team.row()] = row;
    }
  }

  RowLosses losses;
  const T* scores;
  float* log_prob;    // or null
  float* statistics;  // or null: the largest score of each row, and the logarithm of the sum of e^(score - largest)
  LossAndWeight* rows;
};

template <typename T>
absl::Status CrossEntropy(const DeviceCall& call, StreamHandle stream) {
  const RowPlan plan = PlanAxis(call.in_shape(0), 1);
  const RowLosses losses(call, plan.extent);
  auto* rows = reinterpret_cast<LossAndWeight*>(call.workspace);
  LS_RETURN_IF_ERROR(ForEachRow(
      stream, plan, CrossEntropyRow<T>{losses, call.in<T>(0), call.out<float>(1), call.out<float>(2), rows}));
  if (losses.reduction == Reduction::kNone) return absl::OkStatus();
  std::byte* const parts = call.workspace + RowBytes<LossAndWeight>(plan);
  return FoldRows(stream, PlanAll(plan.row_count), parts, TotalLoss{losses, rows});
}

// Of scores that are logarithms of probabilities: one of each row is read.
struct Likelihood {
  using Value = LossAndWeight;
  LS_HD Value First() const { return {0.0, 0.0}; }
  LS_HD Value Of(int64_t row) const {
    return losses.At(row, [&](int64_t c) { return double{log_prob[extents.base(row) + c * extents.inner]}; });
  }
  LS_HD Value Take(const Value& value, const Cell& cell) const { return Join(value, Of(cell.i)); }
  LS_HD Value Join(const Value& a, const Value& b) const { return {a.loss + b.loss, a.weight + b.weight}; }
  LS_HD void Finish(int64_t, const Value& total) const { losses.Finish(total); }

  LS_HD float Load(const Cell& cell) const { return static_cast<float>(Of(cell.i).loss); }
  LS_HD void Store(const Cell& cell, float loss) const { losses.out[cell.i] = loss; }

  RowLosses losses;
  const float* log_prob;
  LabelExtents extents;
};

absl::Status NegativeLogLikelihood(const DeviceCall& call, StreamHandle stream) {
  const LabelExtents extents(call.in_shape(0));
  const Likelihood body{RowLosses(call, extents.classes), call.in<float>(0), extents};
  const RowPlan plan = PlanAll(extents.rows());
  if (body.losses.reduction == Reduction::kNone) return ForEachCell(stream, plan, body);
  return FoldRows(stream, plan, call.workspace, body);
}

// The weight of each label, 0 where it does not count, and their sum.
template <typename Result>
struct Weights {
  using Value = double;
  LS_HD double First() const { return 0; }
  LS_HD double Take(double sum, const Cell& cell) const { return sum + double{Load(cell)}; }
  LS_HD double Join(double a, double b) const { return a + b; }
  LS_HD void Finish(int64_t, double sum) const { out[0] = static_cast<Result>(sum); }

  LS_HD float Load(const Cell& cell) const {
    const Labels::Label label = labels.at(cell.i);
    return !label.valid ? 0.0f : weights != nullptr ? weights[label.index] : 1.0f;
  }
  LS_HD void Store(const Cell& cell, float weight) const { out[cell.i] = weight; }

  Labels labels;
  const float* weights;
  Result* out;
};

absl::Status LossWeights(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<CrossEntropyAttributes>();
  const int64_t classes = call.in<float>(1) != nullptr ? call.in_shape(1)[0] : std::numeric_limits<int64_t>::max();
  const Weights<float> body{Labels(call, 0, attributes.ignore_index, classes), call.in<float>(1), call.out<float>(0)};
  const RowPlan plan = PlanAll(NumElements(call.in_shape(0)));
  if (attributes.reduction == Reduction::kSum) return FoldRows(stream, plan, call.workspace, body);
  return ForEachCell(stream, plan, body);
}

// What a gradient knows of the probabilities: their logarithms, scores with statistics, or nothing where the forward
// op read such logarithms.
enum class Given : uint8_t { kLogProb, kScores, kNothing };

// factor * (probability - target)
template <Given kGiven, typename T>
struct LossGradientRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    if (!team.active()) return;
    const Labels::Label label = labels.at(team.row());
    double factor = double{dloss[per_row ? team.row() : 0]} / (divisor != nullptr ? *divisor : 1.0);
    if (weights != nullptr && label.valid) factor *= double{weights[label.index]};
    if (!label.valid) factor = kNan;
    const auto rounded = static_cast<float>(factor);
    // An ignored label may be any number: none of the row's classes then.
    const int target = label.valid ? static_cast<int>(label.index) : -1;
    const float largest = kGiven == Given::kScores ? statistics[2 * team.row()] : 0.0f;
    const float log_sum = kGiven == Given::kScores ? statistics[2 * team.row() + 1] : 0.0f;
    team.Each(
        [&](const Cell& cell) -> float { return kGiven == Given::kNothing ? kMinusInfinity : float{scores[cell.at]}; },
        [&](const Cell& cell, float x) {
          const float log_prob = kGiven == Given::kScores ? (x - largest) - log_sum : x;
          const float probability = kGiven == Given::kNothing ? 0.0f : Exp(log_prob);
          const float difference = probability - (cell.i == target ? 1.0f : 0.0f);
          // By log_prob only the target has a gradient. The others are set to zero: the sign of a product with zero
          // differs between compilers.
          const bool none = kGiven == Given::kNothing && label.valid && cell.i != target;
          out[cell.at] = label.ignored || none ? 0.0f : rounded * difference;
        });
  }

  Labels labels;
  const float* dloss;
  const T* scores;  // or log_prob
  const float* statistics;
  const float* weights;
  const double* divisor;
  T* out;
  bool per_row;
};

constexpr size_t kDivisorBytes = 256;

template <Given kGiven, typename T>
absl::Status LossGradient(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<CrossEntropyAttributes>();
  const RowPlan plan = PlanAxis(call.in_shape(1), 1);
  const Labels labels(call, 2, attributes.ignore_index, plan.extent);
  const float* weights = call.in<float>(3);
  double* divisor = nullptr;
  if (attributes.reduction == Reduction::kMean) {
    divisor = reinterpret_cast<double*>(call.workspace);
    LS_RETURN_IF_ERROR(FoldRows(stream, PlanAll(plan.row_count), call.workspace + kDivisorBytes,
                                Weights<double>{labels, weights, divisor}));
  }
  const LossGradientRow<kGiven, T> body{.labels = labels,
                                        .dloss = call.in<float>(0),
                                        .scores = call.in<T>(1),
                                        .statistics = call.in<float>(4),
                                        .weights = weights,
                                        .divisor = divisor,
                                        .out = call.out<T>(0),
                                        .per_row = attributes.reduction == Reduction::kNone};
  return ForEachRow(stream, InParts(plan), body);
}

// --- CountCorrect ---

constexpr int kUncounted = -1;
constexpr int kNotRanked = std::numeric_limits<int>::max();

// How many scores are larger than the label's: of equal ones the first is, and a NaN is larger than every number. A
// label whose own score is NaN is not ranked.
struct RankRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const Labels::Label label = labels.at(team.row());
    const auto own_index = static_cast<int>(label.valid ? label.index : 0);
    const float own = label.valid ? scores[team.At(own_index)] : 0.0f;  // a row may be empty
    int rank = 0;
    team.Each([&](const Cell& cell) {
      const float other = scores[cell.at];
      const bool larger = other > own || other != other;
      rank += larger || (other == own && cell.i < own_index) ? 1 : 0;
    });
    rank = team.Sum(rank);
    if (!team.leads()) return;
    const bool counted = mask[QuotientOf(static_cast<int>(team.row()), inner)] != 0.0f && !label.ignored;
    ranks[team.row()] = !counted ? kUncounted : !label.valid || own != own ? kNotRanked : rank;
  }

  Labels labels;
  const float* scores;
  const float* mask;
  int* ranks;
  FastDivide inner;
};

struct CountRanks {
  struct Value {
    int64_t correct;
    int64_t top5;
    int64_t counted;
  };
  LS_HD Value First() const { return {0, 0, 0}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const {
    const int rank = ranks[cell.i];
    const bool counts = rank != kUncounted;
    return Join(value, {counts && rank < 1 ? 1 : 0, counts && rank < 5 ? 1 : 0, counts ? 1 : 0});
  }
  LS_HD Value Join(const Value& a, const Value& b) const {
    return {a.correct + b.correct, a.top5 + b.top5, a.counted + b.counted};
  }
  LS_HD void Finish(int64_t, const Value& value) const {
    if (correct != nullptr) *correct = value.correct;
    if (top5 != nullptr) *top5 = value.top5;
    if (counted != nullptr) *counted = value.counted;
  }

  const int* ranks;
  int64_t* correct;
  int64_t* top5;
  int64_t* counted;
};

absl::Status CountCorrect(const DeviceCall& call, StreamHandle stream) {
  const RowPlan plan = PlanAxis(call.in_shape(0), 1);
  const Labels labels(call, 1, call.attrs<CountCorrectAttributes>().ignore_index, plan.extent);
  auto* ranks = reinterpret_cast<int*>(call.workspace);
  const FastDivide inner(std::max<int64_t>(LabelExtents(call.in_shape(0)).inner, 1));
  LS_RETURN_IF_ERROR(ForEachRow(stream, plan, RankRow{labels, call.in<float>(0), call.in<float>(2), ranks, inner}));
  const CountRanks body{ranks, call.out<int64_t>(0), call.out<int64_t>(1), call.out<int64_t>(2)};
  return FoldRows(stream, PlanAll(plan.row_count), call.workspace + RowBytes<int>(plan), body);
}

bool HasStatistics(const KernelRequest& request) { return request.inputs.size() > 4 && request.inputs[4].present; }

LaunchFunction LossGradientOf(const KernelRequest& request) {
  if (request.node->op != OpType::kSoftmaxCrossEntropyLossGrad) return &LossGradient<Given::kNothing, float>;
  if (!HasStatistics(request)) return &LossGradient<Given::kLogProb, float>;
  return request.outputs[0].dtype == DType::kBF16 ? &LossGradient<Given::kScores, Bf16>
                                                  : &LossGradient<Given::kScores, float>;
}

// Of scores of F32; a cross entropy and its gradient from statistics also of BF16.
bool ServesType(const KernelRequest& request, DType scores) {
  const OpType op = request.node->op;
  const bool bf16 =
      op == OpType::kSoftmaxCrossEntropyLoss || (op == OpType::kSoftmaxCrossEntropyLossGrad && HasStatistics(request));
  return scores == DType::kF32 || (bf16 && scores == DType::kBF16);
}

OwnFunction OfRows(const KernelRequest& request, const Operand& scores) {
  const OpType op = request.node->op;
  const RowPlan plan = PlanAxis(scores.shape, 1);
  if (!ServesType(request, scores.dtype)) return {.refusal = kOtherType};
  if (!plan.served) return {.refusal = kOtherRows};
  const RowPlan total = PlanAll(plan.row_count);
  switch (op) {
    case OpType::kSoftmaxCrossEntropyLoss:
      return {scores.dtype == DType::kBF16 ? &CrossEntropy<Bf16> : &CrossEntropy<float>, "rows",
              RowBytes<LossAndWeight>(plan) + FoldBytes<TotalLoss>(total)};
    case OpType::kNegativeLogLikelihoodLoss:
      return {&NegativeLogLikelihood, "fold", FoldBytes<Likelihood>(total)};
    case OpType::kCountCorrect:
      return {&CountCorrect, "rows", RowBytes<int>(plan) + FoldBytes<CountRanks>(total)};
    default:
      return {LossGradientOf(request), "rows", kDivisorBytes + FoldBytes<Weights<double>>(total)};
  }
}

}  // namespace

OwnFunction OwnLoss(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kSoftmaxCrossEntropyLoss:
    case OpType::kNegativeLogLikelihoodLoss:
    case OpType::kCountCorrect:
      return OfRows(request, request.inputs[0]);
    case OpType::kSoftmaxCrossEntropyLossGrad:
    case OpType::kNegativeLogLikelihoodLossGrad:
      return OfRows(request, request.inputs[1]);
    case OpType::kLossWeights: {
      const RowPlan plan = PlanAll(NumElements(request.inputs[0].shape));
      if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
      if (!plan.served) return {.refusal = kOtherRows};
      return {&LossWeights, "fold", FoldBytes<Weights<float>>(plan)};
    }
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
