#include <limits>

#include "common/math/math.h"
#include "worker/kernels/label_shapes.h"
#include "worker/kernels/loss/pointwise.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/largest.h"

namespace lockstep::device::reference {
namespace {

// Adds up what the rows of a loss give, as the attribute says.
template <typename T>
class LossSum {
 public:
  LossSum(const HostCall& call, const Labels& labels)
      : reduction_(call.attrs<CrossEntropyAttributes>().reduction),
        labels_(labels),
        weights_(call.in<T>(2)),
        out_(call.out<T>(0)) {}

  // log_prob(c): the logarithm of the probability of class c in this row.
  template <typename LogProb>
  void Row(int64_t row, LogProb log_prob) {
    const Labels::Label label = labels_.at(row);
    const double weight = label.ignored                        ? 0.0
                          : weights_ != nullptr && label.valid ? double{weights_[label.index]}
                                                               : 1.0;
    double loss = label.ignored ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    if (label.valid) loss = -weight * log_prob(label.index);
    if (reduction_ == Reduction::kNone) out_[row] = static_cast<T>(loss);
    sum_ += loss;
    denominator_ += weight;
  }

  void Finish() {
    if (reduction_ == Reduction::kSum) out_[0] = static_cast<T>(sum_);
    if (reduction_ == Reduction::kMean) out_[0] = static_cast<T>(sum_ / denominator_);
  }

 private:
  Reduction reduction_;
  const Labels& labels_;
  const T* weights_;
  T* out_;
  double sum_ = 0;
  double denominator_ = 0;
};

template <typename T>
void CrossEntropy(const HostCall& call) {
  const LabelExtents e(call.in_shape(0));
  const Labels labels(call, 1, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  T* log_prob = call.out<T>(1);
  LossSum<T> loss(call, labels);
  for (int64_t row = 0; row < e.rows(); ++row) {
    const T* x = call.in<T>(0) + e.base(row);
    const double largest = Largest(x, e.classes, e.inner);
    double total = 0;
    for (int64_t c = 0; c < e.classes; ++c) total += Exp(static_cast<double>(x[c * e.inner]) - largest);
    const double log_total = largest + Log(total);
    if (T* statistics = call.out<T>(2); statistics != nullptr) {
      statistics[2 * row] = static_cast<T>(largest);
      statistics[2 * row + 1] = static_cast<T>(Log(total));
    }
    if (log_prob != nullptr) {
      for (int64_t c = 0; c < e.classes; ++c) {
        log_prob[e.base(row) + c * e.inner] = static_cast<T>(x[c * e.inner] - log_total);
      }
    }
    loss.Row(row, [&](int64_t c) { return x[c * e.inner] - log_total; });
  }
  loss.Finish();
}

template <typename T>
void Likelihood(const HostCall& call) {
  const LabelExtents e(call.in_shape(0));
  const Labels labels(call, 1, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  LossSum<T> loss(call, labels);
  for (int64_t row = 0; row < e.rows(); ++row) {
    const T* log_prob = call.in<T>(0) + e.base(row);
    loss.Row(row, [&](int64_t c) { return static_cast<double>(log_prob[c * e.inner]); });
  }
  loss.Finish();
}

template <typename T>
double SumOfWeights(const Labels& labels, const T* weights, int64_t rows) {
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const Labels::Label label = labels.at(row);
    if (label.valid) sum += weights != nullptr ? double{weights[label.index]} : 1.0;
  }
  return sum;
}

// With `softmax`, the gradient of cross entropy by the scores, from log_prob or from the scores and statistics; else
// that by log_prob, whose values do not matter then.
template <typename T, bool softmax>
void LossGrad(const HostCall& call) {
  const auto& attributes = call.attrs<CrossEntropyAttributes>();
  const LabelExtents e(call.in_shape(1));
  const Labels labels(call, 2, attributes.ignore_index, e.classes);
  const T* dloss = call.in<T>(0);
  const T* scores = call.in<T>(1);  // log_prob where there are no statistics
  const T* weights = call.in<T>(3);
  const T* statistics = call.in<T>(4);
  const double divisor = attributes.reduction == Reduction::kMean ? SumOfWeights(labels, weights, e.rows()) : 1.0;
  for (int64_t row = 0; row < e.rows(); ++row) {
    const Labels::Label label = labels.at(row);
    double factor = dloss[attributes.reduction == Reduction::kNone ? row : 0] / divisor;
    if (weights != nullptr && label.valid) factor *= weights[label.index];
    if (!label.ignored && !label.valid) factor = std::numeric_limits<double>::quiet_NaN();
    const double shift = statistics != nullptr ? double{statistics[2 * row]} + double{statistics[2 * row + 1]} : 0.0;
    for (int64_t c = 0; c < e.classes; ++c) {
      const int64_t at = e.base(row) + c * e.inner;
      const double probability = softmax ? Exp(scores[at] - shift) : 0.0;
      const double target = label.valid && c == label.index ? 1.0 : 0.0;
      call.out<T>(0)[at] = label.ignored ? T(0) : static_cast<T>(factor * (probability - target));
    }
  }
}

// The scalar or per-label weights, in the element type that the attribute names.
template <typename T>
void LossWeights(const HostCall& call) {
  const auto& attributes = call.attrs<CrossEntropyAttributes>();
  const int64_t rows = NumElements(call.in_shape(0));
  const T* weights = call.in<T>(1);
  const int64_t classes = weights != nullptr ? call.in_shape(1)[0] : std::numeric_limits<int64_t>::max();
  const Labels labels(call, 0, attributes.ignore_index, classes);
  if (attributes.reduction == Reduction::kSum) {
    call.out<T>(0)[0] = static_cast<T>(SumOfWeights(labels, weights, rows));
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const Labels::Label label = labels.at(row);
    call.out<T>(0)[row] = !label.valid ? T(0) : weights != nullptr ? weights[label.index] : T(1);
  }
}

template <typename T>
void PointwiseLoss(const HostCall& call) {
  const auto& attributes = call.attrs<PointwiseLossAttributes>();
  const int64_t count = NumElements(call.in_shape(0));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = PointwiseValue(attributes.kind, attributes.delta, call.in<T>(0)[i], call.in<T>(1)[i]);
    if (attributes.reduction == Reduction::kNone) call.out<T>(0)[i] = static_cast<T>(value);
    sum += value;
  }
  if (attributes.reduction == Reduction::kSum) call.out<T>(0)[0] = static_cast<T>(sum);
  if (attributes.reduction == Reduction::kMean) call.out<T>(0)[0] = static_cast<T>(sum / static_cast<double>(count));
}

template <typename T>
void PointwiseLossGrad(const HostCall& call) {
  const auto& attributes = call.attrs<PointwiseLossAttributes>();
  const int64_t count = NumElements(call.in_shape(1));
  const double divisor = attributes.reduction == Reduction::kMean ? static_cast<double>(count) : 1.0;
  for (int64_t i = 0; i < count; ++i) {
    const double factor = call.in<T>(0)[attributes.reduction == Reduction::kNone ? i : 0] / divisor;
    call.out<T>(0)[i] =
        static_cast<T>(factor * PointwiseSlope(attributes.kind, attributes.delta, call.in<T>(1)[i], call.in<T>(2)[i]));
  }
}

// How many scores are larger than that of `label`: of equal ones the first is, and a NaN is larger than every number. A
// label whose own score is NaN is never among the largest, or a model of NaN would do as well as guessing class 0.
template <typename T>
int64_t Rank(const T* x, int64_t n, int64_t stride, int64_t label) {
  const T own = x[label * stride];
  if (own != own) return std::numeric_limits<int64_t>::max();
  int64_t rank = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T other = x[i * stride];
    const bool larger = other > own || other != other;
    rank += larger || (other == own && i < label) ? 1 : 0;
  }
  return rank;
}

template <typename T>
void CountCorrect(const HostCall& call) {
  const LabelExtents e(call.in_shape(0));
  const Labels labels(call, 1, call.attrs<CountCorrectAttributes>().ignore_index, e.classes);
  int64_t correct = 0;
  int64_t top5 = 0;
  int64_t counted = 0;
  for (int64_t row = 0; row < e.rows(); ++row) {
    const Labels::Label label = labels.at(row);
    if (call.in<T>(2)[row / e.inner] == T(0) || label.ignored) continue;
    ++counted;
    if (!label.valid) continue;
    const int64_t rank = Rank(call.in<T>(0) + e.base(row), e.classes, e.inner, label.index);
    correct += rank < 1 ? 1 : 0;
    top5 += rank < 5 ? 1 : 0;
  }
  const int64_t counts[] = {correct, top5, counted};
  for (int i = 0; i < 3; ++i) {
    if (call.out<int64_t>(i) != nullptr) call.out<int64_t>(i)[0] = counts[i];
  }
}

}  // namespace

template <typename T>
HostFunction LossFunction(OpType type) {
  switch (type) {
    case OpType::kSoftmaxCrossEntropyLoss:
      return &CrossEntropy<T>;
    case OpType::kSoftmaxCrossEntropyLossGrad:
      return &LossGrad<T, true>;
    case OpType::kNegativeLogLikelihoodLoss:
      return &Likelihood<T>;
    case OpType::kNegativeLogLikelihoodLossGrad:
      return &LossGrad<T, false>;
    case OpType::kLossWeights:
      return &LossWeights<T>;
    case OpType::kPointwiseLoss:
      return &PointwiseLoss<T>;
    case OpType::kPointwiseLossGrad:
      return &PointwiseLossGrad<T>;
    case OpType::kCountCorrect:
      return &CountCorrect<T>;
    default:
      return nullptr;
  }
}

template HostFunction LossFunction<float>(OpType);
template HostFunction LossFunction<double>(OpType);

}  // namespace lockstep::device::reference
