#include "chief/watch/page_api.h"

#include <algorithm>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "chief/watch/job_json.h"

namespace lockstep::chief {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kPoints = 2000;

// A number of the query between `least` and `most`; `otherwise` where none is given.
int64_t NumberOf(const HttpRequest& request, const char* name, int64_t least, int64_t most, int64_t otherwise) {
  const auto given = request.query.find(name);
  int64_t number = 0;
  if (given == request.query.end() || !absl::SimpleAtoi(given->second, &number)) return otherwise;
  return std::clamp(number, least, most);
}

HttpResponse Error(unsigned status, const std::string& why) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = Dump({{"error", why}});
  return response;
}

}  // namespace

HttpResponse PageApi::Answer(absl::string_view path, const HttpRequest& request) {
  std::optional<PresentJob> present;
  if (path == "job") {
    absl::StatusOr<PresentJob> now = Present();
    if (!now.ok()) return Error(503, std::string(now.status().message()));
    present = *std::move(now);
  }
  if (!Enter()) return Error(503, "the job's directory does not answer");
  const absl::Cleanup leave = [this] { Leave(); };
  Refresh();
  std::optional<std::string> body;
  if (present.has_value()) {
    body = Dump(JobJson(*present, record_, options_.directory, trouble_, absl::ToUnixMillis(absl::Now())));
  } else {
    body = Compose(path, request);
  }
  if (!body.has_value()) return Error(404, absl::StrCat("there is no ", path, " here"));
  HttpResponse response;
  response.content_type = "application/json";
  response.body = *body;
  return response;
}

void PageApi::Refresh() {
  const absl::Time now = clock_.Now();
  if (now < next_read_) return;
  absl::Status status = record_.Refresh();
  status.Update(log_reader_.ReadNew(options_.place->storage(), [this](ChiefLogLine line) {
    log_.push_back(std::move(line));
    if (log_.size() > kMostLogLines) log_.pop_front();
  }));
  trouble_ = std::string(status.message());
  // From the end of the reading on: a slow storage is not read all the time.
  next_read_ = clock_.Now() + (options_.place->bucket() == nullptr ? kReadDirectoryEvery : kReadBucketEvery);
}

bool PageApi::Enter() {
  MutexLock lock(&mutex_);
  const absl::Time until = clock_.Now() + kPatience;
  while (taken_) {
    const absl::Time now = clock_.Now();
    if (now >= until) return false;
    left_.WaitWithTimeout(&mutex_, until - now);
  }
  taken_ = true;
  return true;
}

void PageApi::Leave() {
  MutexLock lock(&mutex_);
  taken_ = false;
  left_.Signal();
}

absl::StatusOr<PresentJob> PageApi::Present() {
  MutexLock lock(&present_mutex_);
  const absl::Time now = clock_.Now();
  if (now >= next_ask_ || !present_.has_value()) {
    present_ = options_.present();
    next_ask_ = clock_.Now() + kAskEvery;
  }
  return *present_;
}

std::optional<std::string> PageApi::Compose(absl::string_view path, const HttpRequest& request) {
  if (path == "series") return Dump(SeriesListJson(record_.scalars()));
  if (path == "samples") return Dump(SamplesJson(record_));
  if (path == "logs") return LogLines(request);
  if (path == "timeline") {
    return Dump(TimelineJson(record_, NumberOf(request, "from", 0, kLargest, 0),
                             NumberOf(request, "to", 0, kLargest, kLargest)));
  }
  if (!absl::ConsumePrefix(&path, "series/")) return std::nullopt;
  const auto series = record_.scalars().series().find(std::string(path));
  if (series == record_.scalars().series().end()) return std::nullopt;
  return Dump(SeriesJson(series->first, series->second, NumberOf(request, "from", 0, kLargest, 0),
                         NumberOf(request, "to", 0, kLargest, kLargest),
                         static_cast<size_t>(NumberOf(request, "points", 1, 20'000, kPoints))));
}

std::string PageApi::LogLines(const HttpRequest& request) const {
  const auto level = request.query.find("level");
  const LogLevel least =
      level == request.query.end() ? LogLevel::info : ParseLogLevel(level->second).value_or(LogLevel::info);
  const auto wanted = static_cast<size_t>(NumberOf(request, "lines", 1, kMostLogLines, 500));
  Json lines = Json::array();
  for (auto line = log_.rbegin(); line != log_.rend() && lines.size() < wanted; ++line) {
    if (line->level < least) continue;
    Json json = {{"at_ms", line->at_ms},
                 {"level", std::string(LogLevelName(line->level))},
                 {"part", line->part},
                 {"worker", line->worker},
                 {"generation", line->generation},
                 {"text", line->message}};
    if (line->step >= 0) json["step"] = line->step;
    lines.push_back(std::move(json));
  }
  std::reverse(lines.begin(), lines.end());
  return Dump({{"lines", std::move(lines)}});
}

}  // namespace lockstep::chief
