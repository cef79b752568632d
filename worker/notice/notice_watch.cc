#include "worker/notice/notice_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"

namespace lockstep::worker {

NoticeWatch::NoticeWatch(Options options) : options_(std::move(options)), cancel_fd_(eventfd(0, EFD_CLOEXEC)) {
  LS_CHECK(cancel_fd_ >= 0, "a process of its few descriptors can make one more");
  thread_ = std::thread([this] { Run(); });
}

NoticeWatch::~NoticeWatch() {
  const uint64_t one = 1;
  while (write(cancel_fd_, &one, sizeof one) < 0 && errno == EINTR) continue;
  thread_.join();
  close(cancel_fd_);
}

void NoticeWatch::Run() {
  const int ms = static_cast<int>(absl::ToInt64Milliseconds(options_.every));
  while (!LookOnce()) {
    pollfd cancelled{cancel_fd_, POLLIN, 0};
    if (poll(&cancelled, 1, ms) > 0) return;
  }
}

bool NoticeWatch::LookOnce() {
  const absl::StatusOr<NoticeLook> look = options_.source->Look(cancel_fd_);
  if (absl::IsCancelled(look.status())) return false;  // the end is waited for behind this
  if (!look.ok()) {
    if (!std::exchange(failed_, true)) {
      options_.say(absl::StrCat("no notice would be seen now: ", options_.source->name(), ": ", look.status().message(),
                                ". It is looked at on; training does not depend on it"));
    }
    return false;
  }
  if (failed_ && !std::exchange(recovery_said_, true)) options_.say(absl::StrCat(options_.source->name(), " answers"));
  if (!look->remark.empty()) options_.say(look->remark);
  if (look->notice.has_value()) options_.on_notice(*look->notice);
  return look->notice.has_value();
}

}  // namespace lockstep::worker
