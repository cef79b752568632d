#include "common/log/output.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kPatient = absl::Seconds(60);
constexpr absl::Duration kBrief = absl::Milliseconds(1);

// A pipe that holds a page, and a queue that is never freed: its thread may still wait for a reader.
struct Pipe {
  Pipe() {
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
  }
  // Everything up to the `last` text.
  std::string ReadThrough(const std::string& last) const {
    std::string all;
    char buffer[4096];
    while (all.find(last) == std::string::npos) {
      const ssize_t n = read(ends[0], buffer, sizeof buffer);
      REQUIRE(n > 0);
      all.append(buffer, static_cast<size_t>(n));
    }
    return all;
  }
  int ends[2] = {-1, -1};
};

int Count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("output: an output that nobody reads makes nobody wait, and progress is dropped first", "[log]") {
  const Pipe pipe;
  auto* const queue = new OutputQueue(16384);
  const std::string line(99, 'l');
  const std::string progress(99, 'p');

  // A hundred lines fit beside each other; lines and progress of ten times as much do not.
  for (int i = 0; i < 1000; ++i) queue->Write(pipe.ends[1], progress + "\n", OutputKind::kProgress);
  for (int i = 0; i < 100; ++i) queue->Write(pipe.ends[1], line + "\n", OutputKind::kLine);
  CHECK_FALSE(queue->Flush(kBrief));
  CHECK(queue->TakeDropped().lines == 0);  // no room to say so yet
  queue->Write(pipe.ends[1], "the end\n", OutputKind::kLast);

  const std::string all = pipe.ReadThrough("the end\n");
  CHECK(queue->Flush(kPatient));
  const DroppedOutput dropped = queue->TakeDropped();
  CHECK(Count(all, line) == 100);
  CHECK(Count(all, progress) + dropped.progress == 1000);
  CHECK(dropped.progress > 800);
  CHECK(dropped.lines == 0);
  CHECK(queue->TakeDropped().progress == 0);
}

TEST_CASE("output: lines that do not fit are dropped and counted, the last one never", "[log]") {
  const Pipe pipe;
  auto* const queue = new OutputQueue(8192);
  const std::string line(99, 'l');

  for (int i = 0; i < 1000; ++i) queue->Write(pipe.ends[1], line + "\n", OutputKind::kLine);
  queue->Write(pipe.ends[1], "the end\n", OutputKind::kLast);

  const std::string all = pipe.ReadThrough("the end\n");
  CHECK(queue->Flush(kPatient));
  const DroppedOutput dropped = queue->TakeDropped();
  CHECK(dropped.lines > 800);
  CHECK(Count(all, line) + dropped.lines == 1000);
}

TEST_CASE("output: a reader that is gone takes everything", "[log]") {
  signal(SIGPIPE, SIG_IGN);
  const Pipe pipe;
  auto* const queue = new OutputQueue(8192);
  close(pipe.ends[0]);

  for (int i = 0; i < 1000; ++i) queue->Write(pipe.ends[1], std::string(99, 'l') + "\n", OutputKind::kLine);

  CHECK(queue->Flush(kPatient));
}

TEST_CASE("output: a file that has no room for a text takes later ones again", "[log]") {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/limited." + std::to_string(getpid());
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  REQUIRE(file >= 0);
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const queue = new OutputQueue(8192);
  queue->Write(file, "first\n", OutputKind::kLine);
  CHECK(queue->Flush(kPatient));

  const rlimit full = {6, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &full) == 0);
  queue->Write(file, "lost\n", OutputKind::kLine);
  const bool flushed = queue->Flush(kPatient);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(flushed);
  queue->Write(file, "later\n", OutputKind::kLine);
  CHECK(queue->Flush(kPatient));

  char all[32] = {};
  CHECK(pread(file, all, sizeof all - 1, 0) == 12);
  CHECK(std::string(all) == "first\nlater\n");
  close(file);
}

// A pseudo-terminal that passes on what is written as it is.
struct Screen {
  explicit Screen(int columns) {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    REQUIRE(openpty(&near, &far, nullptr, nullptr, &size) == 0);
    termios mode = {};
    REQUIRE(tcgetattr(far, &mode) == 0);
    cfmakeraw(&mode);
    REQUIRE(tcsetattr(far, TCSANOW, &mode) == 0);
  }
  void Resize(int columns) const {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    REQUIRE(ioctl(near, TIOCSWINSZ, &size) == 0);
  }
  std::string Read(size_t bytes) const {
    std::string all(bytes, ' ');
    for (size_t have = 0; have < bytes;) {
      const ssize_t n = read(near, &all[have], bytes - have);
      REQUIRE(n > 0);
      have += static_cast<size_t>(n);
    }
    return all;
  }
  int near = -1;
  int far = -1;
};

TEST_CASE("output: the live line stays below what is written and keeps to the width of the moment", "[log]") {
  const Screen screen(40);
  auto* const queue = new OutputQueue(8192);
  const auto live = [](int columns) { return std::string(static_cast<size_t>(columns), '#'); };

  queue->SetLive(screen.far, live);
  CHECK(queue->Flush(kPatient));
  CHECK(screen.Read(1 + 39 + 3) == "\r" + std::string(39, '#') + "\x1b[K");

  screen.Resize(20);
  queue->Write(screen.far, "a line\n", OutputKind::kLine);
  CHECK(queue->Flush(kPatient));
  CHECK(screen.Read(4 + 7 + 1 + 19 + 3) == "\r\x1b[Ka line\n\r" + std::string(19, '#') + "\x1b[K");

  queue->SetLive(screen.far, nullptr);
  queue->Write(screen.far, "the end\n", OutputKind::kLast);
  CHECK(queue->Flush(kPatient));
  CHECK(screen.Read(4 + 8) == "\r\x1b[Kthe end\n");
}

TEST_CASE("output: a terminal that is gone takes everything", "[log]") {
  const Screen screen(40);
  auto* const queue = new OutputQueue(8192);
  close(screen.near);

  for (int i = 0; i < 1000; ++i) queue->Write(screen.far, std::string(99, 'l') + "\n", OutputKind::kLine);

  CHECK(queue->Flush(kPatient));
}

TEST_CASE("output: a terminal that was stopped makes nobody wait and shows everything afterwards", "[log]") {
  const Screen screen(40);
  auto* const queue = new OutputQueue(8192);
  REQUIRE(tcflow(screen.far, TCOOFF) == 0);

  queue->Write(screen.far, "held back\n", OutputKind::kLine);
  CHECK_FALSE(queue->Flush(kBrief));
  REQUIRE(tcflow(screen.far, TCOON) == 0);

  CHECK(queue->Flush(kPatient));
  CHECK(screen.Read(10) == "held back\n");
}

TEST_CASE("output: lines are rewritten and coloured where a terminal obeys, and colours where they are wanted",
          "[log]") {
  CHECK(ChooseStyle(true, nullptr, "xterm").live);
  CHECK(ChooseStyle(true, nullptr, "xterm").colour);
  CHECK(ChooseStyle(true, "", "xterm").colour);
  CHECK(ChooseStyle(true, "1", "xterm").live);
  CHECK_FALSE(ChooseStyle(true, "1", "xterm").colour);
  CHECK_FALSE(ChooseStyle(true, nullptr, "dumb").live);
  CHECK_FALSE(ChooseStyle(true, nullptr, nullptr).live);
  CHECK_FALSE(ChooseStyle(false, nullptr, "xterm").colour);
}

}  // namespace
}  // namespace lockstep
