#include "chief/stats/history_lines.h"

#include <algorithm>
#include <utility>

#include "chief/stats/line_files.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {

absl::StatusOr<std::vector<WorkerInterval>> ReadHistory(const Storage& storage, int& damaged) {
  std::vector<WorkerInterval> history;
  LineReader reader(kHistoryFolder);
  LS_RETURN_IF_ERROR(reader.ReadNew(storage, [&](absl::string_view line) {
    WorkerInterval interval;
    if (!FromJson(line, kHistoryFolder, &interval).ok()) return false;
    history.push_back(std::move(interval));
    return true;
  }));
  damaged += reader.damaged() + reader.unfinished();
  std::stable_sort(history.begin(), history.end(),
                   [](const WorkerInterval& a, const WorkerInterval& b) { return a.at_ms() < b.at_ms(); });
  return history;
}

}  // namespace lockstep::chief
