#include "common/job/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep::job {
namespace {

struct ByteUnit {
  const char* name;
  int64_t bytes;
};

// Longer names first: "KiB" ends in "B" as well.
constexpr std::array<ByteUnit, 9> kByteUnits = {{{"TiB", int64_t{1} << 40},
                                                 {"GiB", int64_t{1} << 30},
                                                 {"MiB", int64_t{1} << 20},
                                                 {"KiB", int64_t{1} << 10},
                                                 {"TB", 1000000000000},
                                                 {"GB", 1000000000},
                                                 {"MB", 1000000},
                                                 {"KB", 1000},
                                                 {"B", 1}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

absl::StatusOr<absl::Duration> ParseTime(absl::string_view text) {
  absl::Duration time;
  // ParseDuration takes signs and "inf"; neither is an amount of time here.
  if (text.empty() || !IsDigit(text.front()) || !absl::ParseDuration(text, &time) || time == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("expected a time such as 2h, 10m, 5s or 250ms, found '", text, "'"));
  }
  // Whole nanoseconds are what the proto holds; 100 years are more than any setting can mean.
  if (time > absl::Hours(24 * 365 * 100)) {
    return absl::InvalidArgumentError(absl::StrCat("a time of '", text, "' is more than 100 years"));
  }
  return absl::Trunc(time, absl::Nanoseconds(1));
}

absl::StatusOr<ByteSize> ParseByteSize(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("expected a size such as 512MiB, 20GiB or a number of bytes, found '", text, "'"));
  absl::string_view number = text;
  int64_t unit = 1;
  for (const ByteUnit& candidate : kByteUnits) {
    if (absl::ConsumeSuffix(&number, candidate.name)) {
      unit = candidate.bytes;
      break;
    }
  }
  double value = 0;
  if (number.empty() || !IsDigit(number.front()) || !IsDigit(number.back()) || !absl::SimpleAtod(number, &value) ||
      !std::isfinite(value)) {
    return bad;
  }
  ByteSize size;
  int64_t whole = 0;
  if (absl::SimpleAtoi(number, &whole) && whole <= std::numeric_limits<int64_t>::max() / unit) {
    size.set_bytes(whole * unit);
    return size;
  }
  const double bytes = value * static_cast<double>(unit);
  if (bytes >= 0x1p63) return absl::InvalidArgumentError(absl::StrCat("a size of '", text, "' is too large"));
  size.set_bytes(static_cast<int64_t>(bytes));
  return size;
}

absl::StatusOr<GpuMemory> ParseGpuMemory(absl::string_view text) {
  GpuMemory memory;
  if (text == "grow") {
    memory.set_grow(true);
    return memory;
  }
  if (text.empty() || !IsDigit(text.front())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected grow, a fraction of the GPU's memory such as 0.4, or a size such as 8GiB, found '", text, "'"));
  }
  // A number alone is a fraction: nobody means 8 bytes by 8.
  double fraction = 0;
  if (absl::SimpleAtod(text, &fraction)) {
    if (fraction > 0 && fraction <= 1) {
      memory.set_fraction(fraction);
      return memory;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "a fraction of the GPU's memory is above 0 and at most 1, and a size has a unit such as GiB; found '", text,
        "'"));
  }
  if (absl::EndsWith(text, "%")) {
    return absl::InvalidArgumentError(absl::StrCat("expected a fraction such as 0.4, found '", text, "'"));
  }
  const absl::StatusOr<ByteSize> size = ParseByteSize(text);
  if (!size.ok()) return size.status();
  if (size->bytes() == 0) return absl::InvalidArgumentError(absl::StrCat("must be above 0, found ", text));
  memory.set_bytes(size->bytes());
  return memory;
}

absl::StatusOr<WorkerRange> ParseWorkerRange(absl::string_view text) {
  const size_t colon = text.find(':');
  const absl::string_view low = text.substr(0, colon);
  const absl::string_view high = colon == absl::string_view::npos ? low : text.substr(colon + 1);
  int64_t min = 0;
  int64_t max = 0;
  if (low.empty() || high.empty() || !IsDigit(low.back()) || !IsDigit(high.front()) || !absl::SimpleAtoi(low, &min) ||
      !absl::SimpleAtoi(high, &max)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a number of workers such as 4, or \"1:8\" for fewest and most, found '", text, "'"));
  }
  if (min > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("the fewest workers (", min, ") are more than the most (", max, "); write \"fewest:most\""));
  }
  WorkerRange range;
  range.set_min(min);
  range.set_max(max);
  return range;
}

std::string NumberText(double value) {
  if (value != 0 && std::abs(value) < 1e15 && value == std::trunc(value))
    return absl::StrCat(static_cast<int64_t>(value));
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

std::string TimeText(absl::Duration time) { return absl::FormatDuration(time); }

std::string ByteSizeText(const ByteSize& size) {
  for (const ByteUnit& unit : kByteUnits) {
    const bool binary = absl::StrContains(unit.name, "i");
    if (binary && size.bytes() != 0 && size.bytes() % unit.bytes == 0) {
      return absl::StrCat(size.bytes() / unit.bytes, unit.name);
    }
  }
  return absl::StrCat(size.bytes());
}

std::string WorkerRangeText(const WorkerRange& range) {
  return range.min() == range.max() ? absl::StrCat(range.min()) : absl::StrCat(range.min(), ":", range.max());
}

std::string GpuMemoryText(const GpuMemory& memory) {
  switch (memory.amount_case()) {
    case GpuMemory::kFraction:
      return NumberText(memory.fraction());
    case GpuMemory::kBytes: {
      ByteSize size;
      size.set_bytes(memory.bytes());
      const std::string text = ByteSizeText(size);
      return IsDigit(text.back()) ? absl::StrCat(text, "B") : text;
    }
    default:
      return "grow";
  }
}

int64_t GpuMemoryBytes(const GpuMemory& memory, int64_t total_bytes) {
  if (memory.has_bytes()) return memory.bytes();
  return memory.has_fraction() ? static_cast<int64_t>(memory.fraction() * static_cast<double>(total_bytes)) : 0;
}

absl::Duration ToDuration(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

google::protobuf::Duration FromDuration(absl::Duration duration) {
  google::protobuf::Duration proto;
  absl::Duration rest;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

}  // namespace lockstep::job
