#include "common/net/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

bool SameToken(absl::string_view a, absl::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < b.size(); ++i) {
    difference |= static_cast<unsigned char>(b[i]) ^ static_cast<unsigned char>(i < a.size() ? a[i] : 0);
  }
  return difference == 0;
}

absl::StatusOr<std::string> ReadCallerToken(const std::string& file) {
  if (file.empty()) {
    const char* value = std::getenv(kTokenVariable);
    if (value != nullptr && *value != '\0') return std::string(absl::StripAsciiWhitespace(value));
    return absl::NotFoundError(absl::StrCat("no token: give --token-file DIR/chief/token, or set ", kTokenVariable));
  }
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::NotFoundError(absl::StrCat("token file ", file, ": ", std::strerror(errno)));
  struct stat info {};
  char buffer[256];
  const bool statted = fstat(fd, &info) == 0;
  const ssize_t n = read(fd, buffer, sizeof buffer);
  close(fd);
  // The volume of a Secret is a file of root's that the group of the pod may read: PostgreSQL's rule for keys.
  const mode_t closed = info.st_uid == 0 ? 0037 : 0077;
  if (statted && (info.st_mode & closed) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("token file ", file, " can be read by others; set its mode with: chmod 600 ", file));
  }
  const std::string token(absl::StripAsciiWhitespace({buffer, static_cast<size_t>(n < 0 ? 0 : n)}));
  if (token.empty()) return absl::NotFoundError(absl::StrCat("token file ", file, " is empty"));
  return token;
}

}  // namespace lockstep
