// load_main: what a chief costs with many workers on real sockets. For each number of workers one `lockstep chief` with
// a real job, and as many generated workers (load_worker.h) that form, step, lose a member, take one in, save and
// outlive the chief. Prints one table; every figure but `seconds` is the chief's own.
//
//   load_main [--workers 100,300,1000] [--seconds 10] [--step-ms 1000] [--address-bytes 85] [--set key=value]…
//             [--kinds] [--verbose]
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/clock/clock.h"
#include "tests/load/crowd.h"
#include "tests/load/loaded_chief.h"

namespace lockstep::load {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(5);
constexpr int kStatusRuns = 5;

struct Arguments {
  std::vector<size_t> workers = {100, 300, 1000};
  int seconds = 10;
  int step_ms = 1000;
  size_t address_bytes = 85;
  std::vector<std::string> settings;
  bool kinds = false;
  bool verbose = false;
};

class Measurement {
 public:
  Measurement(const Arguments& arguments, size_t workers)
      : arguments_(arguments),
        workers_(workers),
        chief_(absl::StrCat(std::getenv("TEST_TMPDIR"), "/load.", getpid(), ".", workers), workers,
               arguments.settings) {
    chief_.Start();
    crowd_ = std::make_unique<Crowd>(Crowd::Options{.directory = chief_.directory(),
                                                    .step_time = absl::Milliseconds(arguments.step_ms),
                                                    .address_bytes = arguments.address_bytes,
                                                    .verbose = arguments.verbose});
  }

  void Run() {
    Form();
    Steady();
    AskStatus();
    Kill();
    Join();
    RestartChief();
  }

 private:
  void Begin() {
    begin_ = SteadyNow();
    before_ = chief_.Now();
    from_before_ = crowd_->traffics().from_chief.Total();
    to_before_ = crowd_->traffics().to_chief.Total();
  }
  void End(const std::string& what) {
    const Usage now = chief_.Now();
    const double seconds = absl::ToDoubleSeconds(SteadyNow() - begin_);
    const Traffic::Count from = crowd_->traffics().from_chief.Total();
    const Traffic::Count to = crowd_->traffics().to_chief.Total();
    std::cout << absl::StrFormat("%7d  %-14s %8.2f %8.3f %8.1f %6d %6d %9d %9.2f %9d %9.2f", workers_, what, seconds,
                                 now.cpu_seconds - before_.cpu_seconds, static_cast<double>(now.resident_kb) / 1024,
                                 now.threads, now.descriptors, from.messages - from_before_.messages,
                                 static_cast<double>(from.bytes - from_before_.bytes) / 1e6,
                                 to.messages - to_before_.messages,
                                 static_cast<double>(to.bytes - to_before_.bytes) / 1e6)
              << std::endl;
    if (arguments_.kinds) SayKinds();
  }
  // Bytes by kind of message, since the start.
  void SayKinds() const {
    const auto say = [](const char* way, const Traffic& traffic, const google::protobuf::Descriptor& kinds) {
      for (int i = 0; i < kinds.field_count(); ++i) {
        const Traffic::Count count = traffic.Of(kinds.field(i)->number());
        if (count.messages == 0) continue;
        std::cout << absl::StrFormat("           %s %-18s %9d messages %12d bytes\n", way, kinds.field(i)->name(),
                                     count.messages, count.bytes);
      }
    };
    say("to chief  ", crowd_->traffics().to_chief, *proto::WorkerMessage::descriptor());
    say("from chief", crowd_->traffics().from_chief, *proto::ChiefCommand::descriptor());
  }
  void Await(const std::string& what, const std::function<bool(const CrowdView&)>& condition) {
    if (crowd_->WaitUntil(condition, kLimit)) return;
    const CrowdView view = crowd_->View();
    throw std::runtime_error(absl::StrCat("waited in vain for ", what, ": ", view.alive, " live, ", view.members,
                                          " step in ", view.newest.ToString(), "; the chief:\n", Tail(chief_.Log())));
  }
  static std::string Tail(const std::string& log) { return log.size() > 3000 ? log.substr(log.size() - 3000) : log; }

  void Form() {
    Begin();
    crowd_->Start(workers_);
    Await("all to step", [this](const CrowdView& view) { return view.stepped == workers_; });
    End("form");
  }
  void Steady() {
    Begin();
    absl::SleepFor(absl::Seconds(arguments_.seconds));
    const double share = (chief_.Now().cpu_seconds - before_.cpu_seconds) / absl::ToDoubleSeconds(SteadyNow() - begin_);
    End(absl::StrFormat("steady %.1f%%", 100 * share));
  }
  void AskStatus() {
    std::vector<absl::Duration> took;
    std::string output;
    Begin();
    for (int i = 0; i < kStatusRuns; ++i) {
      const absl::StatusOr<absl::Duration> time = chief_.TimeStatusCommand(&output);
      if (!time.ok()) throw std::runtime_error(std::string(time.status().message()));
      took.push_back(*time);
    }
    std::sort(took.begin(), took.end());
    End(absl::StrFormat("status %dms", absl::ToInt64Milliseconds(took[took.size() / 2])));
  }
  void Kill() {
    const Generation before = crowd_->View().newest;
    Begin();
    crowd_->KillOne();
    Await("the others to step", [&](const CrowdView& view) {
      return view.newest > before && view.stepped == view.alive && view.alive == workers_ - 1;
    });
    End("kill");
  }
  void Join() {
    const Generation before = crowd_->View().newest;
    Begin();
    crowd_->Start(1);
    Await("it to step", [&](const CrowdView& view) { return view.newest > before && view.stepped == workers_; });
    End("join");
  }
  void RestartChief() {
    const Generation before = crowd_->View().newest;
    const Term term = chief_.Status()->term() + 1;
    Begin();
    chief_.Kill();
    chief_.Start();
    before_ = Usage();  // of the new process
    Await("all to be welcome again", [&](const CrowdView& view) {
      const auto welcomed = view.welcomed.find(term);
      return welcomed != view.welcomed.end() && welcomed->second == workers_;
    });
    // The chief goes on with them once it has heard all.
    const absl::Time until = SteadyNow() + kLimit;
    for (auto status = chief_.Status(); !status.has_value() || status->phase() != "RUNNING"; status = chief_.Status()) {
      if (SteadyNow() >= until) throw std::runtime_error("the chief adopts nothing:\n" + Tail(chief_.Log()));
    }
    End(crowd_->View().newest == before ? "adopt" : "adopt (broke)");
  }

  const Arguments& arguments_;
  const size_t workers_;
  LoadedChief chief_;
  std::unique_ptr<Crowd> crowd_;
  absl::Time begin_;
  Usage before_;
  Traffic::Count from_before_;
  Traffic::Count to_before_;
};

void RaiseLimitForCrowd() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Main(const Arguments& arguments) {
  RaiseLimitForCrowd();
  setenv("GRPC_VERBOSITY", "NONE", 0);
  setenv("TEST_TMPDIR", std::filesystem::temp_directory_path().c_str(), 0);
  std::cout << absl::StrFormat("%7s  %-14s %8s %8s %8s %6s %6s %9s %9s %9s %9s\n", "workers", "what", "seconds",
                               "CPU s", "RSS MiB", "thr", "fds", "sent", "sent MB", "received", "rcvd MB");
  for (const size_t workers : arguments.workers) Measurement(arguments, workers).Run();
  return 0;
}

}  // namespace
}  // namespace lockstep::load

int main(int argc, char** argv) {
  CLI::App app("What a chief costs with many workers on real sockets");
  lockstep::load::Arguments arguments;
  app.add_option("--workers", arguments.workers, "how many, one measurement for each")->delimiter(',');
  app.add_option("--seconds", arguments.seconds, "of steady training");
  app.add_option("--step-ms", arguments.step_ms, "that a step takes");
  app.add_option("--address-bytes", arguments.address_bytes,
                 "of the secret and address that a rank leaves for the others while a generation forms");
  app.add_option("--set", arguments.settings, "of the job, key=value");
  app.add_flag("--kinds", arguments.kinds, "bytes by kind of message");
  app.add_flag("--verbose", arguments.verbose, "what workers say");
  CLI11_PARSE(app, argc, argv);
  try {
    return lockstep::load::Main(arguments);
  } catch (const std::exception& error) {
    std::cerr << "load_main: " << error.what() << "\n";
    return 1;
  }
}
