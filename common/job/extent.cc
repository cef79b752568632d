#include "common/job/extent.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/job/units.h"
#include "common/status/check.h"

namespace lockstep {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;

// "12.345" -> 12345. Decimals beyond the third are refused: what is stored is exact.
bool ParseThousandths(absl::string_view text, int64_t* out) {
  const size_t dot = text.find('.');
  const absl::string_view whole_text = text.substr(0, dot);
  std::string decimals = dot == absl::string_view::npos ? "" : std::string(text.substr(dot + 1));
  if (dot != absl::string_view::npos && (decimals.empty() || decimals.size() > 3)) return false;
  decimals.resize(3, '0');
  int64_t whole = 0;
  int64_t part = 0;
  const bool digits_only = std::all_of(decimals.begin(), decimals.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits_only || !absl::SimpleAtoi(whole_text, &whole) || !absl::SimpleAtoi(decimals, &part)) return false;
  if (whole < 0 || whole > kMost / 1000) return false;
  *out = whole * 1000 + part;
  return true;
}

int64_t CeilDiv(__int128 a, __int128 b) { return static_cast<int64_t>(std::min<__int128>((a + b - 1) / b, kMost)); }

}  // namespace

bool ScheduleEndsWithJob(job::Schedule::Name name) {
  return name == job::Schedule::NAME_COSINE || name == job::Schedule::NAME_LINEAR ||
         name == job::Schedule::NAME_POLYNOMIAL || name == job::Schedule::NAME_ONE_CYCLE;
}

absl::StatusOr<job::Amount> ParseAmount(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("expected an amount with its unit, such as 10ep, 500steps, 60000samples or 2h, found '", text, "'"));
  job::Amount amount;
  if (text == "auto") {
    amount.set_automatic(true);
    return amount;
  }
  if (text.empty() || text.front() < '0' || text.front() > '9' || absl::StrContains(text, ' ')) return bad;
  absl::string_view number = text;
  int64_t value = 0;
  if (absl::ConsumeSuffix(&number, "ep")) {
    if (!ParseThousandths(number, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected epochs with at most three decimals, such as 10ep or 0.5ep, found '", text, "'"));
    }
    amount.set_milli_epochs(value);
    return amount;
  }
  if (absl::ConsumeSuffix(&number, "steps")) {
    if (!absl::SimpleAtoi(number, &value) || value > kMost) return bad;
    amount.set_steps(value);
    return amount;
  }
  if (absl::ConsumeSuffix(&number, "samples")) {
    if (!absl::SimpleAtoi(number, &value) || value > kMost) return bad;
    amount.set_samples(value);
    return amount;
  }
  // absl reads "0" as a time; an amount without a unit says nothing.
  if (absl::SimpleAtoi(text, &value)) return bad;
  const absl::StatusOr<absl::Duration> time = job::ParseTime(text);
  if (!time.ok()) return bad;
  *amount.mutable_time() = job::FromDuration(*time);
  return amount;
}

std::string AmountText(const job::Amount& amount) {
  switch (amount.amount_case()) {
    case job::Amount::kMilliEpochs: {
      const int64_t whole = amount.milli_epochs() / 1000;
      const int64_t part = amount.milli_epochs() % 1000;
      if (part == 0) return absl::StrCat(whole, "ep");
      std::string decimals = absl::StrCat(absl::Dec(part, absl::kZeroPad3));
      while (decimals.back() == '0') decimals.pop_back();
      return absl::StrCat(whole, ".", decimals, "ep");
    }
    case job::Amount::kSteps:
      return absl::StrCat(amount.steps(), "steps");
    case job::Amount::kSamples:
      return absl::StrCat(amount.samples(), "samples");
    case job::Amount::kTime: {
      const absl::Duration time = job::ToDuration(amount.time());
      return time == absl::ZeroDuration() ? "0s" : job::TimeText(time);
    }
    case job::Amount::kAutomatic:
      return "auto";
    case job::Amount::AMOUNT_NOT_SET:
      break;
  }
  return "0steps";
}

std::optional<absl::Duration> AmountTime(const job::Amount& amount) {
  if (!amount.has_time()) return std::nullopt;
  return job::ToDuration(amount.time());
}

std::optional<int64_t> StepsOf(const job::Amount& amount, int64_t epoch_samples, int64_t global_batch_size) {
  LS_CHECK(epoch_samples > 0 && global_batch_size > 0, "an epoch and a batch hold samples");
  switch (amount.amount_case()) {
    case job::Amount::kMilliEpochs:
      return CeilDiv(static_cast<__int128>(amount.milli_epochs()) * epoch_samples,
                     static_cast<__int128>(global_batch_size) * 1000);
    case job::Amount::kSteps:
      return std::min(amount.steps(), kMost);
    case job::Amount::kSamples:
      return CeilDiv(amount.samples(), global_batch_size);
    case job::Amount::kTime:
    case job::Amount::kAutomatic:
      return std::nullopt;
    case job::Amount::AMOUNT_NOT_SET:
      break;
  }
  return 0;
}

int64_t PassBatch(const job::JobSpec& spec) {
  if (spec.train().has_micro_batch()) return spec.train().micro_batch();
  return spec.train().global_batch_size() / spec.train().logical_shards();
}

std::optional<int64_t> TotalSteps(const job::JobSpec& spec, int64_t train_samples) {
  return StepsOf(spec.train().duration(), train_samples, spec.train().global_batch_size());
}

}  // namespace lockstep
