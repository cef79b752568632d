#include "deploy/cli/log_view.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {
namespace {

// What names consist of, so that worker-1 is not found in worker-11.
bool IsOfName(char byte) { return absl::ascii_isalnum(static_cast<unsigned char>(byte)) || byte == '-' || byte == '_'; }

bool Mentions(absl::string_view text, absl::string_view name) {
  for (size_t at = text.find(name); at != absl::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || !IsOfName(text[at - 1]);
    // A full stop ends a sentence, or goes on with the name.
    const bool goes_on = end < text.size() && (IsOfName(text[end]) ||
                                               (text[end] == '.' && end + 1 < text.size() && IsOfName(text[end + 1])));
    if (begins && !goes_on) return true;
  }
  return false;
}

}  // namespace

bool IsWanted(const LogFilter& filter, const LogRecord& record) {
  if (record.level < filter.level || record.at_ms < filter.since_ms) return false;
  return filter.worker.empty() || record.worker == filter.worker || Mentions(record.message, filter.worker);
}

std::string LogViewLine(const LogRecord& record, bool colour, const absl::TimeZone& zone) {
  const std::string time = absl::FormatTime("%Y-%m-%d %H:%M:%E3S", absl::FromUnixMillis(record.at_ms), zone);
  std::string text = LogRecordText(record, colour);
  if (colour && record.event == "done") {
    text.insert(std::min(text.find('\n'), text.size()), "\x1b[0m");
    text.insert(0, "\x1b[32m");
  }
  return absl::StrCat(colour ? "\x1b[2m" : "", time, colour ? "\x1b[0m" : "", " ", text);
}

bool IsLastWord(const LogRecord& record) {
  return std::any_of(record.fields.begin(), record.fields.end(),
                     [](const auto& field) { return field.first == "exit_code"; });
}

}  // namespace lockstep::cli
