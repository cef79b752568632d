// Makes events of TensorBoard, and the records that hold them in a file (docs/formats/events.md).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_EVENTS_EVENT_RECORD_H_
#define LOCKSTEP_CHIEF_EVENTS_EVENT_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "protos/tensorboard.pb.h"

namespace lockstep::chief {

// Values by tag, e.g. {"loss", 0.31}.
using Scalars = std::vector<std::pair<std::string, double>>;

// The tag of which every agreed step has a value.
inline constexpr char kLossTag[] = "loss";

// An event without content.
tensorboard::Event EventAt(absl::Time now, int64_t step);

// One record of a TFRecord file: u64 length, masked CRC-32C of it, the data, masked CRC-32C of the data.
std::string EncodeEventRecord(absl::string_view data);

// The first record of `bytes`: its data, and the number of bytes that it takes. nullopt: it is incomplete or damaged.
struct EventData {
  absl::string_view data;
  size_t bytes = 0;
};
std::optional<EventData> FirstRecord(absl::string_view bytes);

// Each returns the record of one event.
std::string VersionRecord(absl::Time now);  // the first of every file
std::string StartRecord(absl::Time now, int64_t step);
std::string ScalarsRecord(absl::Time now, int64_t step, const Scalars& values);
// `markdown`: the text that the Text tab shows under `tag`.
std::string TextRecord(absl::Time now, int64_t step, absl::string_view tag, absl::string_view markdown);

// Histograms by tag.
std::string HistogramsRecord(absl::Time now, int64_t step,
                             const std::vector<std::pair<std::string, tensorboard::HistogramProto>>& histograms);

// The step of the first loss in `records`, which are whole records; nullopt if there is none, or a start mark precedes
// it.
std::optional<int64_t> FirstUnmarkedStep(absl::string_view records);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_RECORD_H_
