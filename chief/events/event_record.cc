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

template <typename T>
T ReadLittleEndian(absl::string_view bytes) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8) | static_cast<uint8_t>(bytes[i]);
  return value;
}

size_t ReadLength(absl::string_view record) { return ReadLittleEndian<uint64_t>(record); }

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

std::optional<EventData> FirstRecord(absl::string_view bytes) {
  constexpr size_t kHead = kLengthBytes + kCrcBytes;
  if (bytes.size() < kHead + kCrcBytes) return std::nullopt;
  const auto is_crc_of = [&](absl::string_view covered, size_t at) {
    return ReadLittleEndian<uint32_t>(bytes.substr(at, kCrcBytes)) == MaskCrc32c(Crc32c(covered));
  };
  const size_t length = ReadLength(bytes);
  if (!is_crc_of(bytes.substr(0, kLengthBytes), kLengthBytes)) return std::nullopt;
  if (length > bytes.size() - kHead - kCrcBytes) return std::nullopt;
  const absl::string_view data = bytes.substr(kHead, length);
  if (!is_crc_of(data, kHead + length)) return std::nullopt;
  return EventData{data, kHead + length + kCrcBytes};
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
