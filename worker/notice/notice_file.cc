#include "worker/notice/notice_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/job/units.h"

namespace lockstep::worker {

absl::StatusOr<NoticeLook> NoticeFile::Look(int) {
  struct stat file = {};
  if (stat(path_.c_str(), &file) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NoticeLook();
    return absl::UnavailableError(absl::StrCat("cannot look: ", std::strerror(errno)));
  }
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // one that may not be read is there too
  char text[64] = {};
  const ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text);
  if (fd >= 0) close(fd);
  Notice notice{absl::StrCat(name(), " is there"), absl::ZeroDuration()};
  const absl::string_view word =
      absl::StripAsciiWhitespace(absl::string_view(text, static_cast<size_t>(std::max<ssize_t>(size, 0))));
  if (const auto grace = job::ParseTime(word); grace.ok()) notice.grace = *grace;
  return NoticeLook{std::move(notice), ""};
}

}  // namespace lockstep::worker
