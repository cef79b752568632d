#include "chief/events/event_log.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "protos/tensorboard.pb.h"

namespace lockstep::chief {
namespace {

constexpr size_t kMaxPendingBytes = 16u << 20;

}  // namespace

void EventLog::Trained(absl::Time now, int64_t step, const Scalars& values) {
  const bool goes_back = !last_step_.has_value() || step <= *last_step_;
  last_step_ = step;
  if (goes_back) Add(StartRecord(now, step));
  Add(ScalarsRecord(now, step, values));
}

void EventLog::Measured(absl::Time now, int64_t step, const Scalars& values) { Add(ScalarsRecord(now, step, values)); }

void EventLog::Noted(absl::Time now, int64_t step, absl::string_view tag, absl::string_view markdown) {
  Add(TextRecord(now, step, tag, markdown));
}

void EventLog::Counted(absl::Time now, int64_t step,
                       const std::vector<std::pair<std::string, tensorboard::HistogramProto>>& histograms) {
  Add(HistogramsRecord(now, step, histograms));
}

void EventLog::Published(absl::Time now, int64_t step, absl::string_view path) {
  tensorboard::Event event = EventAt(now, step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::CHECKPOINT);
  event.mutable_session_log()->set_checkpoint_path(std::string(path));
  Add(EncodeEventRecord(event.SerializeAsString()));
}

void EventLog::Add(const std::string& record) {
  if (records_.size() <= kMaxPendingBytes) {
    absl::StrAppend(&records_, record);
  } else {
    last_step_.reset();  // the mark at which readers drop steps may be lost: the next step makes one
  }
}

}  // namespace lockstep::chief
