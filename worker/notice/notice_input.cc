#include "worker/notice/notice_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

absl::StatusOr<NoticeLook> NoticeInput::Look(int cancel_fd) {
  for (;;) {
    pollfd ready[] = {{fd_, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
    if (poll(ready, 2, /*timeout=*/-1) < 0 && errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("cannot wait for its end: ", std::strerror(errno)));
    }
    if (ready[1].revents != 0) return NoticeLook();
    if (ready[0].revents == 0) continue;
    char dropped[4096];
    const ssize_t bytes = read(fd_, dropped, sizeof dropped);
    if (bytes > 0 || (bytes < 0 && (errno == EINTR || errno == EAGAIN))) continue;
    return NoticeLook{Notice{absl::StrCat(name(), " has ended"), absl::ZeroDuration()}, ""};
  }
}

}  // namespace lockstep::worker
