// What people ask of the loop: how the job is, to drain workers, to change a checkpoint.
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/server/chief_loop.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr std::chrono::seconds kAnswerLimit(2);
constexpr std::chrono::seconds kDrainLimit(4);  // the storage takes part
constexpr std::chrono::seconds kChangeLimit(30);

}  // namespace

template <typename Answer>
absl::StatusOr<Answer> ChiefLoop::AskFor(std::function<Answer()> answer) {
  auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> future = promise->get_future();
  const auto ask = [promise, answer = std::move(answer)] { promise->set_value(answer()); };
  if (!inputs_.TryPush(LoopTask(ask))) return absl::UnavailableError("the chief is ending, or too busy");
  if (future.wait_for(kAnswerLimit) != std::future_status::ready) {
    return absl::DeadlineExceededError("the chief is too busy to answer");
  }
  return future.get();
}

absl::StatusOr<proto::StatusReply> ChiefLoop::Ask() {
  return AskFor<proto::StatusReply>([this] { return Describe(); });
}

absl::StatusOr<PresentJob> ChiefLoop::AskPresent() {
  return AskFor<PresentJob>([this] {
    PresentJob present;
    present.status = Describe();
    ShowMarks();
    present.stats = records_.Stats(Now(), core_.View());
    present.live = true;
    present.global_batch = options_.setup->job.train().global_batch_size();
    present.epoch_samples = options_.setup->facts.train_samples;
    return present;
  });
}

absl::StatusOr<std::vector<std::string>> ChiefLoop::Drain(DrainRequested request) {
  auto answer = std::make_shared<DrainAnswer>();
  std::future<absl::StatusOr<std::vector<std::string>>> future = answer->get_future();
  const auto ask = [this, answer, request = std::move(request)]() mutable {
    request.request = ++drain_requests_;
    drain_answers_[request.request] = answer;
    Step(request);
  };
  if (!inputs_.TryPush(LoopTask(ask))) return absl::UnavailableError("the chief is ending, or too busy");
  if (future.wait_for(kDrainLimit) != std::future_status::ready) {
    return absl::DeadlineExceededError(
        "the chief or its storage is too busy to answer; `lockstep status` shows what "
        "is drained");
  }
  return future.get();
}

absl::StatusOr<std::string> ChiefLoop::ChangeCheckpoint(CheckpointChange change, int64_t step) {
  auto answer = std::make_shared<std::promise<absl::StatusOr<std::string>>>();
  std::future<absl::StatusOr<std::string>> future = answer->get_future();
  const auto ask = [this, answer, change, step] {
    storage_.Post([this, answer, change, step] {
      const absl::StatusOr<std::string> changed = options_.store->ChangeCheckpoint(change, step);
      if (IsFenced(changed.status())) Post(TermLost{options_.config.recovered.term + 1}, true);
      if (changed.ok()) LS_LOG(info, *changed);
      answer->set_value(changed);
    });
  };
  if (!inputs_.TryPush(LoopTask(ask))) return absl::UnavailableError("the chief is ending, or too busy");
  if (future.wait_for(kChangeLimit) != std::future_status::ready) {
    return absl::DeadlineExceededError(
        "the storage has not finished yet; `lockstep checkpoint ls` shows what it has done");
  }
  return future.get();
}

void ChiefLoop::Perform(const DrainDecided& action) {
  const auto asked = drain_answers_.find(action.request);
  if (asked == drain_answers_.end()) return;
  const std::shared_ptr<DrainAnswer> answer = std::move(asked->second);
  drain_answers_.erase(asked);
  if (action.refused) return answer->set_value(absl::InvalidArgumentError(absl::StrJoin(action.lines, "; ")));
  storage_.Post([this, answer, action] {
    const absl::Status stored = options_.store->StoreDrains(action.drains);
    if (IsFenced(stored)) Post(TermLost{options_.config.recovered.term + 1}, true);
    std::vector<std::string> lines = action.lines;
    if (!stored.ok()) {
      lines.push_back(absl::StrCat("this cannot be stored, so a chief that starts again does not know of it: ",
                                   stored.message(), ". Give the command once more when the storage works"));
    }
    answer->set_value(std::move(lines));
  });
}

void ChiefLoop::EndDrains() {
  if (core_.View().drained.empty()) return;
  const absl::Status removed = options_.store->StoreDrains({});
  if (!removed.ok() && !IsFenced(removed)) LS_LOG(warn, "drains: ", removed.message());
}

}  // namespace lockstep::chief
