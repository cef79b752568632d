// Draws one metric of a job on a terminal: a tall curve with its scale, and below it a row for each worker, all with
// one scale, so that workers can be compared.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_METRIC_PLOT_H_
#define LOCKSTEP_DEPLOY_CLI_METRIC_PLOT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "protos/stats.pb.h"

namespace lockstep::cli {

enum class Metric {
  kSamplesPerSecond,
  kStepMs,     // from one step to the next
  kComputeMs,  // the part in which a worker computes
  kWaiting,    // the share in which it waits for the others
  kLoss,
};

// Parses "samples_per_second", "step_ms", "compute_ms", "waiting" and "loss"; nullopt for anything else.
std::optional<Metric> ParseMetric(absl::string_view name);

// A value per column, from left to right; nullopt: there is none.
using Curve = std::vector<std::optional<double>>;

// The curve in `rows` rows of block characters from its least to its largest value, which label the left side. The
// width is that of the curve and the labels. Values that are NaN or infinite count as missing.
std::string Plot(const Curve& curve, size_t rows);

// A metric other than the loss over time, from the job's history, at most `width` columns wide (at least 40). `zone`:
// the time zone of its labels. REQUIRES: `history` is not empty and sorted by time.
std::string MetricPlot(const std::vector<WorkerInterval>& history, Metric metric, size_t width, absl::TimeZone zone);

// The columns that a picture of `width` columns has for its curve.
size_t PlotColumns(size_t width);

struct StepValue {
  int64_t step = 0;
  double value = 0;
};
// Draws values by step, at most `width` columns wide (at least 40); a column has the mean of its steps. REQUIRES:
// `values` is not empty and sorted by step.
std::string StepPlot(absl::string_view name, const std::vector<StepValue>& values, size_t width);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_METRIC_PLOT_H_
