#include "chief/hooks/command.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/hooks/group_guard.h"
#include "common/clock/clock.h"
#include "common/net/token.h"
#include "common/storage/descriptor.h"

namespace lockstep::chief {
namespace {

// How long the end of a process may go unnoticed when its output stays open.
constexpr int kPollMs = 50;
constexpr int kReadsAtOnce = 64;

struct Pipe {
  Descriptor reads, writes;
};

std::optional<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// Pointers to the strings, with a null behind them.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWithoutToken() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!absl::StartsWith(*variable, absl::StrCat(kTokenVariable, "="))) variables.emplace_back(*variable);
  }
  return variables;
}

// Between fork and exec: only what is safe there. `failed` tells why it does not become the command.
[[noreturn]] void BecomeCommand(char* const* words, char* const* environment, const GroupGuard& guard, int in, int out,
                                int failed) {
  guard.LeadGroup();
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  execvpe(words[0], words, environment);
  const int cause = errno;
  if (write(failed, &cause, sizeof cause) < 0) _exit(126);
  _exit(127);
}

std::string SignalText(int number) {
  const char* const name = sigdescr_np(number);
  return absl::StrCat("signal ", number, " (", name == nullptr ? "unknown" : name, ")");
}

// A command that was started, and its end.
class Running {
 public:
  Running(const Command& command, const std::function<bool()>& cancelled) : command_(command), cancelled_(cancelled) {}

  CommandEnd Run() {
    const absl::Time begin = SteadyNow();
    const GroupGuard guard;
    const std::string trouble = guard.is_watching() ? Start(guard) : absl::StrCat("its guard: ", strerror(errno));
    if (trouble.empty()) {
      ends_by_ = begin + command_.limit;
      while (!Exited()) Exchange();
      kill(-process_, SIGKILL);  // what it left behind
      Drain();
      Describe();
    } else {
      end_.how = absl::StrCat("cannot be started: ", trouble);
    }
    end_.took = SteadyNow() - begin;
    return std::move(end_);
  }

 private:
  // Returns what went wrong; "" when it runs.
  std::string Start(const GroupGuard& guard) {
    std::optional<Pipe> in = MakePipe(), out = MakePipe(), failed = MakePipe();
    if (!in.has_value() || !out.has_value() || !failed.has_value()) return absl::StrCat("pipe: ", strerror(errno));
    std::vector<std::string> words = command_.words, variables = EnvironmentWithoutToken();
    const std::vector<char*> word_pointers = Pointers(words), variable_pointers = Pointers(variables);
    process_ = fork();
    if (process_ < 0) return absl::StrCat("fork: ", strerror(errno));
    if (process_ == 0) {
      BecomeCommand(word_pointers.data(), variable_pointers.data(), guard, in->reads.get(), out->writes.get(),
                    failed->writes.get());
    }
    failed->writes.Close();
    int cause = 0;
    ssize_t bytes = 0;
    do {
      bytes = read(failed->reads.get(), &cause, sizeof cause);
    } while (bytes < 0 && errno == EINTR);
    if (bytes == sizeof cause) {
      waitpid(process_, nullptr, 0);
      return absl::StrCat(command_.words[0], ": ", strerror(cause));
    }
    input_ = std::move(in->writes);
    output_ = std::move(out->reads);
    fcntl(input_.get(), F_SETFL, O_NONBLOCK);
    fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    return "";
  }

  // Moves bytes for a moment; signals the group where its time is over.
  void Exchange() {
    if (written_ == command_.input.size()) input_.Close();
    pollfd waits[2] = {{output_.get(), POLLIN, 0}, {input_.get(), POLLOUT, 0}};
    poll(waits, 2, kPollMs);
    if (waits[1].revents != 0) Feed();
    if (waits[0].revents != 0) Drain();
    const absl::Time now = SteadyNow();
    const bool cancelled = !ended_by_.has_value() && cancelled_();
    if (now < ends_by_ && !cancelled) return;
    if (!ended_by_.has_value()) {
      ended_by_ = cancelled ? "the job ends" : absl::StrCat("it took more than ", absl::FormatDuration(command_.limit));
    }
    kill(-process_, killed_ ? SIGKILL : SIGTERM);
    killed_ = true;
    ends_by_ = now + command_.kill_after;
  }

  // A command need not read its input.
  void Feed() {
    const ssize_t bytes = write(input_.get(), command_.input.data() + written_, command_.input.size() - written_);
    if (bytes > 0) written_ += static_cast<size_t>(bytes);
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) input_.Close();
  }

  // Keeps what there is to read now.
  void Drain() {
    char buffer[1 << 14];
    // A flood does not put off its end.
    for (int reads = 0; reads < kReadsAtOnce && output_.is_open(); ++reads) {
      const ssize_t bytes = read(output_.get(), buffer, sizeof buffer);
      if (bytes < 0) return;
      if (bytes == 0) return output_.Close();
      const size_t kept = std::min(static_cast<size_t>(bytes), command_.most_output - end_.output.size());
      end_.output.append(buffer, kept);
      end_.cut += static_cast<size_t>(bytes) - kept;
    }
  }

  bool Exited() { return waitpid(process_, &status_, WNOHANG) == process_; }

  void Describe() {
    end_.well = !ended_by_.has_value() && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
    end_.how = WIFEXITED(status_) ? absl::StrCat("exit code ", WEXITSTATUS(status_)) : SignalText(WTERMSIG(status_));
    if (ended_by_.has_value()) absl::StrAppend(&end_.how, ", because ", *ended_by_);
  }

  const Command& command_;
  const std::function<bool()>& cancelled_;
  pid_t process_ = -1;
  Descriptor input_, output_;
  size_t written_ = 0;
  absl::Time ends_by_;
  std::optional<std::string> ended_by_;  // why it was told to end
  bool killed_ = false;                  // SIGTERM was sent
  int status_ = 0;
  CommandEnd end_;
};

}  // namespace

CommandEnd RunCommand(const Command& command, const std::function<bool()>& cancelled) {
  return Running(command, cancelled).Run();
}

}  // namespace lockstep::chief
