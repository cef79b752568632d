// Shows the tensors that workers observed for hooks, in TensorBoard and as text (docs/formats/events.md).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_EVENTS_TENSOR_EVENTS_H_
#define LOCKSTEP_CHIEF_EVENTS_TENSOR_EVENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "chief/events/event_record.h"
#include "protos/observation.pb.h"

namespace lockstep::chief {

using Histograms = std::vector<std::pair<std::string, tensorboard::HistogramProto>>;

// "tensors/NAME/mean" and the like.
Scalars StatisticsOf(const StateFacts& facts);
// "tensors/NAME"; incomplete histograms are left out.
Histograms HistogramsOf(const StateFacts& facts);

// A line for each tensor with statistics, of the first 16.
inline constexpr int kMostStatisticsLines = 16;
std::vector<std::string> StatisticsLines(const StateFacts& facts);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_TENSOR_EVENTS_H_
