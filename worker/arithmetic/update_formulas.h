// The arithmetic of an update, one element at a time, by torch.optim's formulas: what the loops of a CPU and the
// kernels of a GPU both call. Float32 without contraction; scalars were computed once per step in float64 (see
// worker/arithmetic/optimizer.h).
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
    kSgd,      // as many slots as there is momentum: none or one
    kAdam,     // also AdamW, whose decay is a factor; two slots
    kRmsProp,  // one slot, and one of momentum
    kAdagrad,  // one slot
    kLion,     // one slot; decay is a factor
  };
  Kind kind = Kind::kSgd;
  bool decays = false;    // weight_decay times the parameter is added to the gradient
  bool momentum = false;  // sgd, rmsprop
  bool nesterov = false;  // sgd, with momentum
};

// Everything of an update that is the same for all elements. The float members are rounded once from float64.
struct UpdateScalars {
  float denominator = 1;   // the reduced sum is divided by it
  float clip = 1;          // then multiplied by this
  bool clips = false;      // whether to multiply at all
  float weight_decay = 0;  // all but adamw and lion: times the parameter, added to the gradient
  float lr = 0;            // all but adam
  float momentum = 0;      // sgd, rmsprop
  float decay = 1;         // adamw, lion: 1 - lr * weight_decay, times the parameter
  float beta1 = 0;         // lion
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float step_size = 0;    // adam: lr / (1 - beta1^t)
  float correction2 = 1;  // adam: sqrt(1 - beta2^t)
  float epsilon = 0;
  bool copies_average = false;  // the average becomes the new value
  float average_rate = 0;       // else it moves by this share of the way to it
};

// The mean gradient, clipped: where nothing clips the factor is 1, which changes no bit.
LS_HD [[gnu::always_inline]] inline float MeanGradient(const UpdateScalars& s, float sum) {
  return sum / s.denominator * s.clip;
}

// The average, moved towards the parameter's new value. Not for copies_average.
LS_HD [[gnu::always_inline]] inline float MovedAverage(const UpdateScalars& s, float average, float value) {
  return average + s.average_rate * (value - average);
}

// The new value of a parameter's element, given the reduced sum of its gradient. `buffer` is its momentum, updated in
// place; untouched without kMomentum.
template <bool kDecays, bool kMomentum, bool kNesterov>
LS_HD [[gnu::always_inline]] inline float SgdElement(const UpdateScalars& s, float sum, float value, float& buffer) {
  float gradient = MeanGradient(s, sum);
  if (kDecays) gradient = gradient + s.weight_decay * value;
  if (kMomentum) {
    // From a buffer of zeros the first step leaves the gradient itself in it, as torch.optim.SGD does.
    buffer = s.momentum * buffer + gradient;
    gradient = kNesterov ? gradient + s.momentum * buffer : buffer;
  }
  return value - s.lr * gradient;
}

// Likewise. kDecays: into the gradient. Else AdamW's factor takes off the parameter; it is 1 where nothing decays.
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

// Likewise. `buffer` is the momentum of what the mean square has scaled.
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

// Likewise. `squares` is the sum of all squares so far.
template <bool kDecays>
LS_HD [[gnu::always_inline]] inline float AdagradElement(const UpdateScalars& s, float sum, float value,
                                                         float& squares) {
  float gradient = MeanGradient(s, sum);
  if (kDecays) gradient = gradient + s.weight_decay * value;
  squares = squares + gradient * gradient;
  return value - s.lr * (gradient / (SquareRoot(squares) + s.epsilon));
}

// Likewise: a step of one length, by the sign of a mean. A NaN stays one.
LS_HD [[gnu::always_inline]] inline float LionElement(const UpdateScalars& s, float sum, float value, float& mean) {
  const float gradient = MeanGradient(s, sum);
  const float direction = s.beta1 * mean + s.one_minus_beta1 * gradient;
  mean = s.beta2 * mean + s.one_minus_beta2 * gradient;
  const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : direction;
  return value * s.decay - s.lr * sign;
}

// A running statistic of a model, moved towards the step's mean.
LS_HD [[gnu::always_inline]] inline float MovedStatistic(double momentum, float running, double mean) {
  // A momentum of 0 keeps nothing, also of a value that is not finite.
  const bool replaced = momentum == 0.0 && running - running != 0.0f;
  const double kept = replaced ? 0.0 : momentum * running;
  return static_cast<float>(kept + (1.0 - momentum) * mean);
}

// The factor that brings a gradient of this sum of squares, divided by `denominator`, to a norm of at most `max_norm`,
// as torch.nn.utils.clip_grad_norm_ does.
LS_HD [[gnu::always_inline]] inline float ClipFactor(double sum_of_squares, double denominator, double max_norm) {
  const double norm = SquareRoot(sum_of_squares) / denominator;
  const double factor = max_norm / (norm + 1e-6);
  return static_cast<float>(factor < 1.0 ? factor : 1.0);
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_ARITHMETIC_UPDATE_FORMULAS_H_
