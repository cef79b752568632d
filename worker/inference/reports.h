// The quality of predictions against labels, with the metrics as scikit-learn defines them.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_INFERENCE_REPORTS_H_
#define LOCKSTEP_WORKER_INFERENCE_REPORTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep::worker {

// One class against all others. A metric is NaN where it is undefined: without labels, or predictions, of the class.
struct ClassFigures {
  int64_t labels = 0;     // samples of the class
  int64_t predicted = 0;  // samples predicted as the class
  int64_t correct = 0;    // samples in both
  double precision = 0;   // correct / predicted
  double recall = 0;      // correct / labels
  double f1 = 0;          // 2 correct / (labels + predicted)
  double auc = 0;         // area under the ROC curve, by the probability of the class
};

struct ClassReport {
  std::vector<ClassFigures> classes;
  std::vector<int64_t> confusion;  // [classes, classes]: row: label, column: prediction
  // Means over the classes for which the metric is defined.
  double macro_f1 = 0;
  double macro_auc = 0;
};

// `scores`: [samples, classes] before the softmax; the prediction is the first class with the highest score. Samples
// whose label is outside [0, classes) are ignored.
ClassReport ReportClasses(absl::Span<const float> scores, absl::Span<const int64_t> labels, int64_t classes);

struct ErrorReport {
  double mean_absolute = 0;
  double root_mean_square = 0;
  double r2 = 0;  // 1 - squared errors / squared distances of the targets from their mean; NaN for equal targets
};

// Errors over all elements. REQUIRES: equal sizes, at least one element.
ErrorReport ReportErrors(absl::Span<const float> predictions, absl::Span<const float> targets);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_REPORTS_H_
