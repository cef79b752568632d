#include "chief/logs/chief_logs.h"

#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "common/status/status_macros.h"

namespace lockstep::chief {

absl::Status ChiefLogReader::ReadNew(const Storage& storage, const std::function<void(ChiefLogLine)>& take) {
  const absl::Status status = lines_.ReadNew(storage, [&take](absl::string_view line) {
    std::optional<LogRecord> record = ParseLogRecord(line);
    if (!record.has_value()) return false;
    take(*std::move(record));
    return true;
  });
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<ChiefLogLine>> ReadChiefLogs(const Storage& storage, size_t lines, LogLevel level) {
  ChiefLogReader reader;
  std::deque<ChiefLogLine> newest;
  LS_RETURN_IF_ERROR(reader.ReadNew(storage, [&](ChiefLogLine line) {
    if (line.level < level) return;
    newest.push_back(std::move(line));
    if (newest.size() > lines) newest.pop_front();
  }));
  return std::vector<ChiefLogLine>(std::make_move_iterator(newest.begin()), std::make_move_iterator(newest.end()));
}

}  // namespace lockstep::chief
