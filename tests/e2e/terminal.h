// A pseudo-terminal of a given width for a process under test, with what the process wrote to it.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_E2E_TERMINAL_H_
#define LOCKSTEP_TESTS_E2E_TERMINAL_H_

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace lockstep::e2e {

// The lines of an output, without empty ones.
inline std::vector<std::string> Lines(const std::string& output) {
  return absl::StrSplit(absl::StripTrailingAsciiWhitespace(output), '\n', absl::SkipEmpty());
}

// The two ends of a pseudo-terminal. The process under test has the far end as its controlling terminal, in a session
// of its own, as in a login over ssh.
class Terminal {
 public:
  explicit Terminal(int columns) {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    if (openpty(&near_, &far_, nullptr, nullptr, &size) != 0) throw std::runtime_error("openpty failed");
    fcntl(near_, F_SETFD, FD_CLOEXEC);
    fcntl(far_, F_SETFD, FD_CLOEXEC);
  }
  ~Terminal() {
    Close();
    close(far_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // For Process: what the child calls to attach to this terminal.
  std::function<void()> ForChild() const {
    return [far = far_] {
      setsid();
      ioctl(far, TIOCSCTTY, 0);
      for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(far, fd);
    };
  }

  // As above, for a terminal with control sequences and colours. `no_color`: the value of NO_COLOR; nullptr: not set.
  std::function<void()> ForChild(const char* no_color) const {
    return [in_child = ForChild(), no_color] {
      in_child();
      setenv("TERM", "xterm", 1);
      no_color == nullptr ? unsetenv("NO_COLOR") : setenv("NO_COLOR", no_color, 1);
    };
  }

  void Resize(int columns) const {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    ioctl(near_, TIOCSWINSZ, &size);
  }
  // Types `keys`.
  void Type(const std::string& keys) const {
    if (write(near_, keys.data(), keys.size()) < 0) throw std::runtime_error("the terminal takes no keys");
  }
  // The output since the last call; waits a moment if there is none.
  std::string Read() const {
    std::string text;
    char buffer[4096];
    pollfd ready{near_, POLLIN, 0};
    while (poll(&ready, 1, text.empty() ? kMomentMs : 0) > 0 && (ready.revents & POLLIN) != 0) {
      const ssize_t n = read(near_, buffer, sizeof buffer);
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  // Breaks the connection: the kernel sends SIGHUP, and writes fail with EIO.
  void Close() {
    if (near_ >= 0) close(near_);
    near_ = -1;
  }

 private:
  static constexpr int kMomentMs = 10;
  int near_ = -1;
  int far_ = -1;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_TERMINAL_H_
