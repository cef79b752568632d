#include "tests/bench/session_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/protocol/text.h"
#include "worker/session/actions.h"
#include "worker/session/events.h"

namespace lockstep::bench {
namespace {

template <typename T>
T Parse(absl::string_view text) {
  T value;
  const absl::Status status = text::FromText(text, value);
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
  return value;
}

void AddEvent(absl::string_view line, SessionRecord& record, int64_t& now) {
  const size_t space = line.find(' ');
  if (!absl::SimpleAtoi(line.substr(0, space), &now)) throw std::runtime_error("an event without its time");
  const absl::string_view text = line.substr(space + 1);
  if (absl::StartsWith(text, "Tick")) return;
  record.instants.emplace(now, text.substr(0, text.find('{')));
  if (!absl::StartsWith(text, "StepFinished{")) return;
  const auto finished = std::get<worker::StepFinished>(Parse<worker::Event>(text));
  if (finished.outcome != worker::StepOutcome::kApplied) return;
  record.applied.push_back({now, finished.step, finished.generation});
}

void AddAction(absl::string_view text, int64_t now, SessionRecord& record) {
  record.instants.emplace(now, text.substr(0, text.find('{')));
  if (!absl::StartsWith(text, "TakeSnapshot{")) return;
  record.snapshots.push_back(std::get<worker::TakeSnapshot>(Parse<worker::Action>(text)).step);
}

}  // namespace

SessionRecord ReadSessionRecord(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  SessionRecord record;
  int64_t now = 0;
  std::string line;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: torn
    if (absl::StartsWith(line, "E ")) AddEvent(absl::string_view(line).substr(2), record, now);
    if (absl::StartsWith(line, "A ")) AddAction(absl::string_view(line).substr(2), now, record);
  }
  return record;
}

std::vector<SessionRecord> ReadSessionRecords(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (absl::StartsWith(entry.path().filename().string(), "worker-")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<SessionRecord> records;
  for (const std::string& path : paths) {
    SessionRecord record = ReadSessionRecord(path);
    if (!record.applied.empty()) records.push_back(std::move(record));
  }
  return records;
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

}  // namespace lockstep::bench
