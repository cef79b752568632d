#include "common/storage/host_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "common/storage/descriptor.h"

namespace lockstep {

absl::StatusOr<std::string> ReadHostFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, path);
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t bytes = read(file.get(), buffer, sizeof buffer);
    if (bytes == 0) return content;
    if (bytes > 0) content.append(buffer, static_cast<size_t>(bytes));
    if (bytes < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, path);
  }
}

}  // namespace lockstep
