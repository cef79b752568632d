// The result of stage 2: everything that decides what a step computes, and nothing about machines. It holds the forward
// graph with the batch unbound, its variables and their initialisation, the loss, the update rule and the signature of
// the inputs. Training and evaluation graphs are derived from it (training_graph.h), the same way everywhere.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_METAGRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_METAGRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/graph/ops/ir.h"

namespace lockstep {

// Raised whenever the rules for deriving, initialising or updating change their meaning. Part of the fingerprint.
inline constexpr int kMetaGraphVersion = 2;

// What the data pipeline does to the stored elements of an input before the graph sees them:
// (stored * scale - mean[c]) / std[c], c the index along the input's axis 1; one entry serves every c.
struct Normalisation {
  double scale = 1.0;
  std::vector<double> mean = {0.0};
  std::vector<double> std = {1.0};
  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

enum class InputRole : uint8_t { kFeature, kLabel };

struct SignatureInput {
  std::string name;   // of the graph input
  std::string field;  // of the data source: "images", "labels", ...
  InputRole role = InputRole::kFeature;
  DType dtype = DType::kF32;
  Shape shape;  // begins with kBatchDim
  Normalisation normalisation;
  friend bool operator==(const SignatureInput&, const SignatureInput&) = default;
};

enum class LossKind : uint8_t {
  kSoftmaxCrossEntropy,  // scores [N, C, d...] or [N, d..., C], integer labels [N, d...]
  kMse,
  kL1,
  kHuber,
  kBceWithLogits,
  kGraphOutput,  // a scalar output of the graph
};

struct LossRule {
  LossKind kind = LossKind::kSoftmaxCrossEntropy;
  // The graph output that the loss compares with the label, or, for kGraphOutput, that is the loss.
  std::string output;
  std::string label;                    // a graph input; empty for kGraphOutput
  std::optional<int64_t> ignore_index;  // softmax_cross_entropy
  std::vector<double> class_weights;    // softmax_cross_entropy; empty: all 1
  double huber_delta = 1.0;
  bool classes_last = false;  // softmax_cross_entropy: the classes are the scores' last dimension, not the second
  // softmax_cross_entropy, in training: this share of the target is spread evenly over all classes, the rest belongs to
  // the label.
  double label_smoothing = 0.0;
  // softmax_cross_entropy, in training: a sample has a second label, its partner's, and a share that its own label has
  // in the loss.
  bool mixes_labels = false;
  friend bool operator==(const LossRule&, const LossRule&) = default;
};

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdamW, kRmsProp, kAdagrad, kLion, kLamb, kAdafactor };

// Parameters with a learning rate and a weight decay of their own. The schedule's formula uses this `lr` in place of
// the schedule's.
struct ParameterGroup {
  std::vector<std::string> parameters;  // sorted
  double lr = 0.0;
  double weight_decay = 0.0;
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

// As torch.optim.{SGD, Adam, AdamW, RMSprop, Adagrad, Adafactor} with these arguments; Lion as Chen et al., "Symbolic
// discovery of optimization algorithms", 2023; LAMB as You et al., "Large batch optimization for deep learning", 2019,
// with bias correction and the identity for phi. Of parameters in `no_decay` LAMB makes a step of Adam's length.
struct OptimizerRule {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0.0;  // sgd, rmsprop
  bool nesterov = false;  // sgd
  double weight_decay = 0.0;
  double beta1 = 0.9;                  // adam, adamw, lion, lamb
  double beta2 = 0.999;                // likewise, and rmsprop, where PyTorch calls it alpha
  double epsilon = 1e-8;               // all but sgd and lion; adafactor: PyTorch's first eps
  double beta2_decay = -0.8;           // adafactor
  double min_scale = 1e-3;             // adafactor, where PyTorch calls it the second eps
  double max_rms = 1.0;                // adafactor, where PyTorch calls it d
  std::vector<std::string> no_decay;   // parameters whose weights do not decay, sorted
  std::vector<ParameterGroup> groups;  // no parameter is in two of them
  friend bool operator==(const OptimizerRule&, const OptimizerRule&) = default;
};

enum class ScheduleKind : uint8_t {
  kConstant,
  kStep,
  kCosine,
  kLinear,
  kPolynomial,
  kExponential,
  kMilestones,
  kCosineRestarts,
  kOneCycle,
  kPlateau,
};

// The learning rate of the update from step s to s + 1. While s < warmup_steps it is lr * (s + 1) / warmup_steps, then:
//   constant     lr
//   step         lr * gamma ^ floor(s / step_size)
//   milestones   lr * gamma ^ (how many of `milestones` are at most s)
//   exponential  lr * gamma ^ (s / step_size)
// and with done = min(1, (s - warmup_steps) / (total_steps - warmup_steps)):
//   cosine       min_lr + (lr - min_lr) / 2 * (1 + cos(pi * done))
//   linear       min_lr + (lr - min_lr) * (1 - done)
//   polynomial   min_lr + (lr - min_lr) * (1 - done) ^ power
//   cosine_restarts  as cosine, over periods that begin after the warmup: the first has step_size steps, each later one
//                `growth` times as many as the one before
//   one_cycle    as torch.optim.lr_scheduler.OneCycleLR: along half a cosine from lr / div_factor up to lr at pct_start
//                of total_steps, then along another down to lr / div_factor / final_div_factor; no warmup
// With plateau the rate also depends on evaluations: max(min(min_lr, lr), lr * gamma ^ EvaluationLedger::rate_cuts)
// takes the place of lr, during the warmup too.
struct ScheduleRule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double lr = 0.0;
  int64_t warmup_steps = 0;
  int64_t step_size = 0;
  double gamma = 0.0;
  int64_t total_steps = 0;
  double min_lr = 0.0;
  std::vector<int64_t> milestones;  // rising
  double power = 1.0;
  int64_t growth = 1;
  double pct_start = 0.3;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
  friend bool operator==(const ScheduleRule&, const ScheduleRule&) = default;
};

// Exponential moving averages of the parameters. The update from step s to s + 1 moves the average after the parameter
// itself: to the parameter's new value while s < start_steps and in the first update, then to average + (1 - decay) *
// (parameter - average), as torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay) when it is updated
// after every step from step max(1, start_steps) on.
struct EmaRule {
  double decay = 0.0;
  int64_t start_steps = 0;
  friend bool operator==(const EmaRule&, const EmaRule&) = default;
};

enum class OnNan : uint8_t { kStop, kSkipStep };

enum class ReductionMode : uint8_t { kExact, kFast };

struct UpdateRule {
  OptimizerRule optimizer;
  ScheduleRule schedule;
  std::optional<double> clip_global_norm;
  OnNan on_nan = OnNan::kStop;
  ReductionMode reduction = ReductionMode::kExact;
  std::optional<EmaRule> ema;
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

// A second name in the model's state dict for a tensor of the state: that of a tied weight, or the step count of a
// batch normalisation.
struct StateAlias {
  std::string name;
  std::string of;  // a variable, or kStepCounterName
  friend bool operator==(const StateAlias&, const StateAlias&) = default;
};

// The precision that passes compute with (passes/reduce_precision.h). The variables keep their own types.
enum class Precision : uint8_t { kFloat32, kBf16 };

inline constexpr char kStepCounterName[] = "lockstep.step";

struct MetaGraph {
  int version = kMetaGraphVersion;
  // The batch is unbound: `values` is empty, and the leading dimensions of inputs are kBatchDim.
  Graph forward;
  std::vector<SignatureInput> signature;
  LossRule loss;
  UpdateRule update;
  std::vector<StateAlias> aliases;
  // Number of samples of one forward and backward pass; batch statistics depend on it.
  int64_t pass_batch = 0;
  Precision precision = Precision::kFloat32;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_METAGRAPH_H_
