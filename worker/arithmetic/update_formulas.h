// The optimizer formulas for a single element, as in torch.optim. CPU loops and GPU kernels call the same functions.
// All compute in float32 without contraction; the scalars were computed once per step in float64
// (worker/arithmetic/optimizer.h).
// Formulas that need sums over a whole parameter are in norm_formulas.h.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ARITHMETIC_UPDATE_FORMULAS_H_
#define LOCKSTEP_WORKER_ARITHMETIC_UPDATE_FORMULAS_H_

#include <cstdint>

#include "common/math/host_device.h"
#include "common/math/math.h"

namespace lockstep::device {

// Which formula updates a parameter: the same for all parameters of a job.
struct UpdateFormula {
  enum class Kind : uint8_t {
    kSgd,      // one slot with momentum, else none
    kAdam,     // two slots; AdamW too, whose weight decay is decoupled (UpdateScalars::decay)
    kRmsProp,  // one slot, two with momentum
    kAdagrad,  // one slot
    kLion,     // one slot; weight decay is decoupled
    // By sums over the whole parameter:
    kLamb,       // two slots
    kAdafactor,  // a matrix: two slots, one per row and one per column; else one. Weight decay is decoupled
  };
  Kind kind = Kind::kSgd;
  bool decays = false;    // adds weight_decay * parameter to the gradient
  bool momentum = false;  // sgd, rmsprop
  bool nesterov = false;  // sgd, with momentum
};

// The last two dimensions of a parameter, which is one matrix after another. No columns: it has fewer dimensions.
struct TrailingMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
};

// The scalars of an update, the same for all elements of a parameter. The float members are rounded once from float64.
struct UpdateScalars {
  float denominator = 1;   // divides the reduced sum of gradients
  float clip = 1;          // multiplies the mean gradient
  bool clips = false;      // false: `clip` is 1
  float weight_decay = 0;  // gradient += weight_decay * parameter; lamb: direction += weight_decay * parameter
  float lr = 0;            // all but adam; adafactor: at most 1 / sqrt(t)
  float momentum = 0;      // sgd, rmsprop
  float decay = 1;         // adamw, lion, adafactor: 1 - lr * weight_decay, multiplies the parameter
  float beta1 = 0;         // lion
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float step_size = 0;    // adam: lr / (1 - beta1^t); lamb: 1 / (1 - beta1^t)
  float correction2 = 1;  // adam, lamb: sqrt(1 - beta2^t)
  float epsilon = 0;
  bool scales = true;           // lamb: the step has the parameter's length, times lr
  float least_square = 0;       // adafactor: epsilon^2
  float min_scale = 0;          // adafactor
  float max_rms = 1;            // adafactor
  bool copies_average = false;  // the average of the parameters is set to the new value
  float average_rate = 0;       // else average += average_rate * (value - average)
};

// The scalars of a parameter whose weights do not decay.
LS_HD [[gnu::always_inline]] inline UpdateScalars WithoutDecay(UpdateScalars s) {
  s.weight_decay = 0;
  s.decay = 1;
  s.scales = false;
  return s;
}

// The mean gradient, clipped. Without clipping the factor is 1, which changes no bit.
LS_HD [[gnu::always_inline]] inline float MeanGradient(const UpdateScalars& s, float sum) {
  return sum / s.denominator * s.clip;
}

// The average, moved towards the parameter's new value. REQUIRES: !s.copies_average.
LS_HD [[gnu::always_inline]] inline float MovedAverage(const UpdateScalars& s, float average, float value) {
  return average + s.average_rate * (value - average);
}

// The functions below return the new value of one element of a parameter, given `sum`, the reduced sum of its gradient,
// and its old `value`; they update the slots in place. kDecays: UpdateFormula::decays.

// torch.optim.SGD. `buffer` is the momentum buffer, untouched without kMomentum.
template <bool kDecays, bool kMomentum, bool kNesterov>
LS_HD [[gnu::always_inline]] inline float SgdElement(const UpdateScalars& s, float sum, float value, float& buffer) {
  float gradient = MeanGradient(s, sum);
  if (kDecays) gradient = gradient + s.weight_decay * value;
  if (kMomentum) {
    // In the first step the buffer is zero and becomes the gradient, as in torch.optim.SGD.
    buffer = s.momentum * buffer + gradient;
    gradient = kNesterov ? gradient + s.momentum * buffer : buffer;
  }
  return value - s.lr * gradient;
}

// torch.optim.Adam with kDecays, else AdamW, whose factor `decay` is 1 without weight decay. `mean` and `square` are
// exp_avg and exp_avg_sq.
template <bool kDecays>
LS_HD [[gnu::always_inline]] inline float AdamElement(const UpdateScalars& s, float sum, float value, float& mean,
                                                      float& square) {
  float gradient = MeanGradient(s, sum);
  if (!kDecays) value = value * s.decay;
  if (kDecays) gradient = gradient + s.weight_decay * value;
  mean = mean + s.one_minus_beta1 * (gradient - mean);
  square = s.beta2 * square + s.one_minus_beta2 * (gradient * gradient);
  // The square root of float is correctly rounded by IEEE 754, in every instruction set.
  const float denominator = SquareRoot(square) / s.correction2 + s.epsilon;
  return value - s.step_size * (mean / denominator);
}

// torch.optim.RMSprop. `square` is square_avg; `buffer` is the momentum of the gradients divided by its root, untouched
// without kMomentum.
template <bool kDecays, bool kMomentum>
LS_HD [[gnu::always_inline]] inline float RmsPropElement(const UpdateScalars& s, float sum, float value, float& square,
                                                         float& buffer) {
  float gradient = MeanGradient(s, sum);
  if (kDecays) gradient = gradient + s.weight_decay * value;
  square = s.beta2 * square + s.one_minus_beta2 * (gradient * gradient);
  const float scaled = gradient / (SquareRoot(square) + s.epsilon);
  if (!kMomentum) return value - s.lr * scaled;
  buffer = s.momentum * buffer + scaled;
  return value - s.lr * buffer;
}

// torch.optim.Adagrad. `squares` is the sum of all squared gradients so far.
template <bool kDecays>
LS_HD [[gnu::always_inline]] inline float AdagradElement(const UpdateScalars& s, float sum, float value,
                                                         float& squares) {
  float gradient = MeanGradient(s, sum);
  if (kDecays) gradient = gradient + s.weight_decay * value;
  squares = squares + gradient * gradient;
  return value - s.lr * (gradient / (SquareRoot(squares) + s.epsilon));
}

// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023): a step by the sign of an interpolated
// mean. NaN stays NaN.
LS_HD [[gnu::always_inline]] inline float LionElement(const UpdateScalars& s, float sum, float value, float& mean) {
  const float gradient = MeanGradient(s, sum);
  const float direction = s.beta1 * mean + s.one_minus_beta1 * gradient;
  mean = s.beta2 * mean + s.one_minus_beta2 * gradient;
  const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : direction;
  return value * s.decay - s.lr * sign;
}

// A running statistic (of batch normalisation), moved towards the step's mean.
LS_HD [[gnu::always_inline]] inline float MovedStatistic(double momentum, float running, double mean) {
  // A momentum of 0 replaces the old value even where that is not finite: 0 * NaN would keep it.
  const bool replaced = momentum == 0.0 && running - running != 0.0f;
  const double kept = replaced ? 0.0 : momentum * running;
  return static_cast<float>(kept + (1.0 - momentum) * mean);
}

// The factor that limits the norm of the mean gradient to `max_norm`, as torch.nn.utils.clip_grad_norm_ does.
// `sum_of_squares` is that of the summed gradient, which `denominator` turns into the mean.
LS_HD [[gnu::always_inline]] inline float ClipFactor(double sum_of_squares, double denominator, double max_norm) {
  const double norm = SquareRoot(sum_of_squares) / denominator;
  const double factor = max_norm / (norm + 1e-6);
  return static_cast<float>(factor < 1.0 ? factor : 1.0);
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_ARITHMETIC_UPDATE_FORMULAS_H_
