#include "worker/collectives/completion.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"

namespace lockstep::worker {
namespace {

constexpr char kBlamedRank[] = "lockstep/blamed-rank";

}  // namespace

void Completion::End(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (status_.has_value()) return;
  status_ = status;
  ended_.SignalAll();
}

bool Completion::Done() const {
  MutexLock lock(&mutex_);
  return status_.has_value();
}

absl::Status Completion::Wait(absl::Duration limit) {
  // Bounded, so that the instant can be computed for any `limit`.
  const absl::Time until = SteadyNow() + std::min(limit, absl::Hours(24 * 365));
  if (const auto driver = driver_.lock(); driver != nullptr && !Done()) driver->Drive(*this, until);
  MutexLock lock(&mutex_);
  while (!status_.has_value()) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the collective is still under way after ", absl::FormatDuration(limit)));
    }
    ended_.WaitWithTimeout(&mutex_, left);
  }
  return *status_;
}

Handle EndedHandle(const absl::Status& status) {
  auto handle = std::make_shared<Completion>();
  handle->End(status);
  return handle;
}

absl::Status AsAborted(const absl::Status& cause) { return AsAborted(cause, cause.ok() ? "aborted" : cause.message()); }

absl::Status AsAborted(const absl::Status& cause, absl::string_view message) {
  absl::Status aborted = absl::AbortedError(message);
  cause.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { aborted.SetPayload(type, payload); });
  return aborted;
}

absl::Status Blame(absl::Status status, int rank) {
  status.SetPayload(kBlamedRank, absl::Cord(absl::StrCat(rank)));
  return status;
}

std::optional<int> BlamedRank(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kBlamedRank);
  int rank = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) return std::nullopt;
  return rank;
}

absl::Status CheckBlocks(absl::Span<const int64_t> sizes, int ranks, size_t total) {
  int64_t sum = 0;
  bool negative = false;
  for (int64_t size : sizes) {
    negative = negative || size < 0;
    sum += size;
  }
  const bool one_per_rank = sizes.size() == static_cast<size_t>(ranks);
  if (!negative && one_per_rank && static_cast<size_t>(sum) == total) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(sizes.size(), " blocks of together ", sum, " for ", ranks,
                                                 " ranks and a buffer of ", total,
                                                 negative ? "; one is negative" : ""));
}

}  // namespace lockstep::worker
