#include "worker/notice/notice_watch.h"

#include <poll.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/sync/queue.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

// Far longer than anything here takes: reached only when it never happens.
constexpr absl::Duration kWatchLimit = absl::Seconds(60);

// Gives these looks one after another, then the last one for ever.
class Scripted : public NoticeSource {
 public:
  Scripted(std::vector<absl::StatusOr<NoticeLook>> looks, BoundedQueue<int>& looked)
      : looks_(std::move(looks)), looked_(looked) {}
  std::string name() const override { return "the script"; }
  absl::StatusOr<NoticeLook> Look(int) override {
    const size_t at = std::min(next_++, looks_.size() - 1);
    looked_.TryPush(static_cast<int>(at));
    return looks_[at];
  }

 private:
  const std::vector<absl::StatusOr<NoticeLook>> looks_;
  BoundedQueue<int>& looked_;
  size_t next_ = 0;
};

// Ends a look only when it is not awaited any more.
class Hanging : public NoticeSource {
 public:
  explicit Hanging(BoundedQueue<int>& looked) : looked_(looked) {}
  std::string name() const override { return "the abyss"; }
  absl::StatusOr<NoticeLook> Look(int cancel_fd) override {
    looked_.TryPush(0);
    pollfd cancelled{cancel_fd, POLLIN, 0};
    poll(&cancelled, 1, -1);
    return absl::CancelledError("not awaited any more");
  }

 private:
  BoundedQueue<int>& looked_;
};

struct Watched {
  std::unique_ptr<NoticeWatch> Start(std::unique_ptr<NoticeSource> source) {
    NoticeWatch::Options options;
    options.source = std::move(source);
    options.every = absl::Milliseconds(1);
    options.on_notice = [this](const Notice& notice) { notices.TryPush(notice); };
    options.say = [this](const std::string& line) { said.TryPush(line); };
    return std::make_unique<NoticeWatch>(std::move(options));
  }
  std::unique_ptr<NoticeWatch> Start(std::vector<absl::StatusOr<NoticeLook>> looks) {
    return Start(std::make_unique<Scripted>(std::move(looks), looked));
  }
  // Until the script's look of this number was taken.
  void WaitForLook(int number) {
    while (looked.Pop(kWatchLimit).value_or(number) < number) continue;
  }

  BoundedQueue<Notice> notices{100};
  BoundedQueue<std::string> said{100};
  BoundedQueue<int> looked{1000};
};

NoticeLook Nothing() { return {}; }
NoticeLook Gone() { return {Notice{"the end", absl::Seconds(7)}, ""}; }

TEST_CASE("notice watch: the first notice is given once, and ends the looking", "[notice]") {
  Watched watched;
  const auto watch = watched.Start({Nothing(), Nothing(), Gone(), Gone()});

  const auto notice = watched.notices.Pop(kWatchLimit);

  REQUIRE(notice.has_value());
  CHECK(notice->what == "the end");
  CHECK(notice->grace == absl::Seconds(7));
  CHECK(watched.notices.size() == 0);
  CHECK(watched.said.size() == 0);
}

TEST_CASE("notice watch: a source that fails is said once, is looked at on, and may give a notice later", "[notice]") {
  Watched watched;
  const absl::Status failure = absl::UnavailableError("nobody is there");
  const auto watch = watched.Start({failure, failure, failure, Nothing(), failure, Nothing(), Gone()});

  REQUIRE(watched.notices.Pop(kWatchLimit).has_value());

  CHECK_THAT(*watched.said.Pop(kWatchLimit), Contains("the script") && Contains("nobody is there"));
  CHECK_THAT(*watched.said.Pop(kWatchLimit), Contains("answers"));
  CHECK(watched.said.size() == 0);
}

TEST_CASE("notice watch: a remark is said and is no notice", "[notice]") {
  Watched watched;
  const auto watch = watched.Start({NoticeLook{std::nullopt, "perhaps soon"}, Nothing(), Nothing()});

  watched.WaitForLook(2);

  CHECK(watched.said.Pop(kWatchLimit) == "perhaps soon");
  CHECK(watched.notices.size() == 0);
}

TEST_CASE("notice watch: its end does not wait for a source that hangs", "[notice]") {
  Watched watched;
  auto watch = watched.Start(std::make_unique<Hanging>(watched.looked));
  watched.WaitForLook(0);

  watch.reset();

  CHECK(watched.notices.size() == 0);
  CHECK(watched.said.size() == 0);
}

}  // namespace
}  // namespace lockstep::worker
