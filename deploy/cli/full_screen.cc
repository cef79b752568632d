#include "deploy/cli/full_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

constexpr absl::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // the other screen, without a cursor
constexpr absl::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr std::pair<absl::string_view, Key> kSequences[] = {
    {"\x1b[A", Key::kUp},      {"\x1bOA", Key::kUp},        {"\x1b[B", Key::kDown}, {"\x1bOB", Key::kDown},
    {"\x1b[5~", Key::kPageUp}, {"\x1b[6~", Key::kPageDown}, {"\x1b[H", Key::kHome}, {"\x1bOH", Key::kHome},
    {"\x1b[1~", Key::kHome},   {"\x1b[F", Key::kEnd},       {"\x1bOF", Key::kEnd},  {"\x1b[4~", Key::kEnd},
};

std::atomic<bool> asked_to_end{false};

bool WriteToTerminal(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// The length of a control sequence that begins `bytes`: ESC, [ or O, parameters, a letter or ~.
size_t SequenceLength(absl::string_view bytes) {
  size_t length = 2;
  while (length < bytes.size() && (bytes[length] < 0x40 || bytes[length] > 0x7e)) ++length;
  return std::min(length + 1, bytes.size());
}

}  // namespace

KeyPress TakeKey(absl::string_view& bytes) {
  while (!bytes.empty()) {
    for (const auto& [sequence, key] : kSequences) {
      if (!absl::StartsWith(bytes, sequence)) continue;
      bytes.remove_prefix(sequence.size());
      return {key, 0};
    }
    if (bytes.size() > 1 && bytes[0] == '\x1b' && (bytes[1] == '[' || bytes[1] == 'O')) {
      bytes.remove_prefix(SequenceLength(bytes));
      continue;
    }
    const char byte = bytes[0];
    bytes.remove_prefix(1);
    if (byte == 'q' || byte == 'Q' || byte == '\x03' || byte == '\x04' || byte == '\x1b') return {Key::kQuit, 0};
    if (byte >= ' ' && byte < '\x7f') return {Key::kCharacter, byte};
  }
  return {};
}

ScreenSize SizeOfScreen() {
  ScreenSize screen;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return screen;
  if (size.ws_col > 0) screen.columns = size.ws_col;
  if (size.ws_row > 0) screen.rows = size.ws_row;
  return screen;
}

FullScreen::FullScreen() {
  has_keys_ = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios mode = before_;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);  // Ctrl-C is a key
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
  struct sigaction action = {};
  action.sa_handler = [](int) { asked_to_end = true; };  // without SA_RESTART: poll returns
  for (const int number : kEndingSignals) sigaction(number, &action, nullptr);
  WriteToTerminal(kEnter);
}

FullScreen::~FullScreen() {
  WriteToTerminal(kLeave);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

bool FullScreen::Draw(const std::vector<std::string>& rows) {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < rows.size(); ++i) absl::StrAppend(&text, i > 0 ? "\r\n" : "", rows[i], "\x1b[K");
  absl::StrAppend(&text, "\x1b[J");
  return WriteToTerminal(text);
}

KeyPress FullScreen::Wait(absl::Duration wait) {
  if (typed_.empty()) {
    pollfd ready{has_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    const auto ms = static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(wait), 0, 60'000));
    const int n = asked_to_end ? 0 : poll(&ready, 1, ms);
    if (asked_to_end) return {Key::kQuit, 0};
    if (n <= 0) return {};
    char buffer[256];
    const ssize_t bytes = read(STDIN_FILENO, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) return {};
    if (bytes <= 0) return {Key::kQuit, 0};
    typed_.assign(buffer, static_cast<size_t>(bytes));
  }
  absl::string_view left = typed_;
  const KeyPress press = TakeKey(left);
  typed_ = std::string(left);
  return press;
}

}  // namespace lockstep::cli
