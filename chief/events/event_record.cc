#include "chief/events/event_record.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/status/check.h"

namespace lockstep::chief {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kCrcBytes = sizeof(uint32_t);

template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

size_t ReadLength(absl::string_view record) {
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint8_t>(record[i]);
  return length;
}

std::string Encode(const tensorboard::Event& event) { return EncodeEventRecord(event.SerializeAsString()); }

}  // namespace

tensorboard::Event EventAt(absl::Time now, int64_t step) {
  tensorboard::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  event.set_step(step);
  return event;
}

std::string EncodeEventRecord(absl::string_view data) {
  std::string record;
  AppendLittleEndian(static_cast<uint64_t>(data.size()), record);
  AppendLittleEndian(MaskCrc32c(Crc32c(record)), record);
  absl::StrAppend(&record, data);
  AppendLittleEndian(MaskCrc32c(Crc32c(data)), record);
  return record;
}

std::string VersionRecord(absl::Time now) {
  tensorboard::Event event = EventAt(now, 0);
  event.set_file_version("brain.Event:2");
  return Encode(event);
}

std::string StartRecord(absl::Time now, int64_t step) {
  tensorboard::Event event = EventAt(now, step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return Encode(event);
}

std::string ScalarsRecord(absl::Time now, int64_t step, const Scalars& values) {
  tensorboard::Event event = EventAt(now, step);
  for (const auto& [tag, number] : values) {
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    value->set_simple_value(static_cast<float>(number));
  }
  return Encode(event);
}

std::string TextRecord(absl::Time now, int64_t step, absl::string_view tag, absl::string_view markdown) {
  tensorboard::Event event = EventAt(now, step);
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(std::string(tag));
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value->mutable_metadata()->set_data_class(tensorboard::DATA_CLASS_TENSOR);
  value->mutable_tensor()->set_dtype(tensorboard::DT_STRING);
  value->mutable_tensor()->mutable_tensor_shape();  // a scalar's
  value->mutable_tensor()->add_string_val(std::string(markdown));
  return Encode(event);
}

std::string HistogramsRecord(absl::Time now, int64_t step,
                             const std::vector<std::pair<std::string, tensorboard::HistogramProto>>& histograms) {
  tensorboard::Event event = EventAt(now, step);
  for (const auto& [tag, histogram] : histograms) {
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    *value->mutable_histo() = histogram;
  }
  return Encode(event);
}

std::optional<int64_t> FirstUnmarkedStep(absl::string_view records) {
  while (!records.empty()) {
    const size_t length = ReadLength(records);
    tensorboard::Event event;
    LS_CHECK(event.ParseFromArray(records.data() + kLengthBytes + kCrcBytes, static_cast<int>(length)),
             "records are whole");
    if (event.session_log().status() == tensorboard::SessionLog::START) return std::nullopt;
    if (event.summary().value_size() > 0 && event.summary().value(0).tag() == kLossTag) return event.step();
    records.remove_prefix(kLengthBytes + length + 2 * kCrcBytes);
  }
  return std::nullopt;
}

}  // namespace lockstep::chief
