#include "chief/events/event_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/crc32c.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "protos/tensorboard.pb.h"

namespace lockstep::chief {
namespace {

constexpr size_t kMaxPendingBytes = 16u << 20;

template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

tensorboard::Event EventAt(absl::Time now, int64_t step) {
  tensorboard::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  event.set_step(step);
  return event;
}

std::string ScalarsAt(absl::Time now, int64_t step, const EventLog::Scalars& values) {
  tensorboard::Event event = EventAt(now, step);
  for (const auto& [tag, number] : values) {
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    value->set_simple_value(static_cast<float>(number));
  }
  return event.SerializeAsString();
}

}  // namespace

std::string EncodeEventRecord(absl::string_view data) {
  std::string record;
  AppendLittleEndian(static_cast<uint64_t>(data.size()), record);
  AppendLittleEndian(MaskCrc32c(Crc32c(record)), record);
  absl::StrAppend(&record, data);
  AppendLittleEndian(MaskCrc32c(Crc32c(data)), record);
  return record;
}

std::string EventFileName(absl::Time now, absl::string_view host, int64_t pid, int64_t uid) {
  return absl::StrFormat("events.out.tfevents.%010d.%s.%d.%d", absl::ToUnixSeconds(now), host, pid, uid);
}

absl::StatusOr<std::unique_ptr<WritableFile>> CreateEventFile(Storage& storage, absl::string_view name, absl::Time now,
                                                              absl::string_view records) {
  LS_RETURN_IF_ERROR(storage.CreateDirectories(layout::kEvents));
  const std::string path = JoinPath(layout::kEvents, name);
  LS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, storage.CreateFile(path, Access::kShared));
  tensorboard::Event version = EventAt(now, 0);
  version.set_file_version("brain.Event:2");
  absl::Status status = file->Append(absl::StrCat(EncodeEventRecord(version.SerializeAsString()), records));
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = storage.SyncDirectory(layout::kEvents);
  if (status.ok()) return file;
  file.reset();
  storage.RemoveTree(path).IgnoreError();
  return status;
}

void EventLog::Trained(absl::Time now, int64_t step, const Scalars& values) {
  if (!last_step_.has_value() || step <= *last_step_) {
    tensorboard::Event start = EventAt(now, step);
    start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
    Add(start.SerializeAsString());
  }
  last_step_ = step;
  Add(ScalarsAt(now, step, values));
}

void EventLog::Evaluated(absl::Time now, int64_t step, const Scalars& values) { Add(ScalarsAt(now, step, values)); }

void EventLog::Published(absl::Time now, int64_t step, absl::string_view path) {
  tensorboard::Event event = EventAt(now, step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::CHECKPOINT);
  event.mutable_session_log()->set_checkpoint_path(std::string(path));
  Add(event.SerializeAsString());
}

void EventLog::Add(absl::string_view event) {
  if (records_.size() <= kMaxPendingBytes) absl::StrAppend(&records_, EncodeEventRecord(event));
}

}  // namespace lockstep::chief
