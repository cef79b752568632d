#include "deploy/cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "deploy/cli/byte_units.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kBetween = absl::Milliseconds(200);
constexpr char kClear[] = "\r\x1b[K";  // back to the line's begin, and all of it away

const Clock& ProcessClock() {
  static const SteadyClock clock;
  return clock;
}

}  // namespace

ProgressLine::ProgressLine(std::string what, uint64_t total)
    : ProgressLine(std::move(what), total, std::cerr, ProcessClock(), isatty(STDERR_FILENO) != 0) {}

ProgressLine::ProgressLine(std::string what, uint64_t total, std::ostream& out, const Clock& clock, bool shown)
    : what_(std::move(what)), total_(total), out_(out), clock_(clock), shown_(shown) {}

ProgressLine::~ProgressLine() {
  if (drawn_) out_ << kClear << std::flush;
}

void ProgressLine::Advance(uint64_t bytes) {
  done_ += bytes;
  if (!shown_) return;
  const absl::Time now = clock_.Now();
  if (now < next_) return;
  next_ = now + kBetween;
  drawn_ = true;
  const double part = total_ == 0 ? 1 : std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  out_ << kClear
       << absl::StreamFormat("%s  %3.0f %%  %.1f of %.1f MiB", what_, 100 * part, static_cast<double>(done_) / kMiB,
                             static_cast<double>(total_) / kMiB)
       << std::flush;
}

}  // namespace lockstep::cli
