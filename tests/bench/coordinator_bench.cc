// coordinator_bench: what the chief's core costs with many workers: CPU seconds of a cold start, of a second of steady
// training, of one lost worker and of one that joins, and bytes of memory per worker. No sockets, no computing: workers
// answer at once, as honest ones do.
//
//   coordinator_bench [--workers 1000] [--seconds 10]
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/core/coordinator.h"

namespace lockstep::chief {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Answers every command as soon as it is sent. What the coordinator uses is measured; what the workers use is not.
class Cluster {
 public:
  explicit Cluster(uint32_t workers) : core_(Config(workers)) {
    Step(Tick{});
    busy_ = true;  // all Hellos lie in the queue at once
    for (uint32_t index = 0; index < workers; ++index) Join();
    busy_ = false;
    Do(Tick{});
  }

  void Join() {
    const SessionId session = ++sessions_;
    Fake& fake = fakes_[session];
    fake.id = Incarnation{7, session};
    Hello hello;
    hello.preferred_name = absl::StrCat("worker-", session);
    hello.host = absl::StrCat("host-", session / 8);
    hello.peer_address = absl::StrCat("10.", session >> 16, ".", session >> 8 & 255, ".", session & 255, ":7000");
    Do(FromWorker{session, WorkerFence{"", 0, fake.id}, hello});
  }
  void KillFirst() {
    const SessionId session = fakes_.begin()->first;
    fakes_.erase(session);
    Do(SessionClosed{session, "connection reset by peer"});
  }
  // Every worker beats twice and reports ten steps in each second.
  void Train(int seconds) {
    for (int half = 0; half < 2 * seconds; ++half) {
      now_ += absl::Milliseconds(500);
      step_ += 5;
      for (auto& [session, fake] : fakes_) {
        const Position position{step_, 0};
        Do(HeartbeatReceived{WorkerFence{"job", 1, fake.id}, {Heartbeat::Phase::kComputing, step_, position}});
        const bool reports = half % 2 == 0 && !fake.generation.IsNone();
        if (reports) Say(session, fake, Report{fake.generation, "lineage", position, {}, {}, {}});
      }
      Do(Tick{});
    }
  }
  void PassTime(absl::Duration duration) {
    now_ += duration;
    Do(Tick{});
  }
  double TakeCpu() { return std::exchange(cpu_, 0); }
  uint64_t TakeSent() { return std::exchange(sent_, 0); }
  CoordinatorView View() { return core_.View(); }

 private:
  static constexpr size_t kBurst = 8;
  static constexpr size_t kLongestBurst = 1024;

  struct Fake {
    Incarnation id;
    Generation generation;
    bool has_state = false;
  };

  static CoordinatorConfig Config(uint32_t workers) {
    CoordinatorConfig config;
    config.policy.job = "job";
    config.policy.lineage = "lineage";
    config.policy.metagraph = "graph";
    config.policy.training.end_step = 1000000;
    config.policy.training.logical_shards = 4096;
    config.policy.max_workers = 1 << 20;
    config.policy.expected_workers = workers;
    config.recovered.checkpoint = SnapshotId{"lineage", 0, "digest"};
    config.recovered.plan_hash = "plan";
    config.recovered.data_digest = "data";
    return config;
  }

  void Do(const Event& event) {
    queue_.push_back(event);
    if (busy_) return;
    busy_ = true;
    while (!queue_.empty()) {
      if (queue_.size() < kBurst) {
        TakeOne();
        continue;
      }
      // As the chief's loop does with what lies in its queue.
      const size_t many = std::min(queue_.size(), kLongestBurst);
      Step(BurstBegins{});
      for (size_t taken = 0; taken < many; ++taken) TakeOne();
      Step(BurstEnds{});
    }
    busy_ = false;
  }
  void TakeOne() {
    const Event next = std::move(queue_.front());
    queue_.pop_front();
    Step(next);
  }
  void Step(const Event& event) {
    const double before = CpuSeconds();
    std::vector<Action> actions = core_.Step(now_, event);
    cpu_ += CpuSeconds() - before;
    for (Action& action : actions) {
      if (const auto* send = std::get_if<Send>(&action)) Obey(send->session, send->fence, send->command);
      if (const auto* send = std::get_if<SendToAll>(&action)) {
        for (const SessionId session : send->sessions) Obey(session, send->fence, send->command);
      }
      if (const auto* end = std::get_if<Exit>(&action)) std::cerr << "the chief ended: " << end->reason << "\n";
    }
  }
  void Say(SessionId session, const Fake& fake, WorkerMessage message) {
    Do(FromWorker{session, WorkerFence{"job", 1, fake.id}, std::move(message)});
  }
  void Obey(SessionId session, const ChiefFence& fence, const ChiefCommand& command) {
    const auto found = fakes_.find(session);
    if (found == fakes_.end()) return;
    ++sent_;
    Fake& fake = found->second;
    if (std::holds_alternative<Prepare>(command)) {
      return Say(session, fake, Ready{"plan", "data", absl::Seconds(1), 100});
    }
    if (const auto* test = std::get_if<TestPeers>(&command)) {
      PeersTested answer{test->round, {}, {}, ""};
      for (const Member& peer : test->peers) answer.reached.push_back(peer.incarnation);
      return Say(session, fake, std::move(answer));
    }
    if (const auto* form = std::get_if<Form>(&command)) {
      fake.generation = fence.generation;
      fake.has_state = true;
      step_ = form->position.step;
      return Say(session, fake, Formed{fake.generation, form->position, ""});
    }
    if (std::holds_alternative<Verdict>(command)) {
      const Generation over = std::exchange(fake.generation, Generation());
      return Say(session, fake, VerdictAck{over, fake.has_state, "lineage", Position{step_, 0}, ""});
    }
    if (std::holds_alternative<BoundaryRequest>(command)) {
      const Generation met = std::exchange(fake.generation, Generation());
      if (!met.IsNone()) Say(session, fake, AtBoundary{met, "lineage", Position{step_, 0}, "", false});
    }
  }

  Coordinator core_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
  std::map<SessionId, Fake> fakes_;
  SessionId sessions_ = 0;
  uint64_t step_ = 0;
  uint64_t sent_ = 0;
  std::deque<Event> queue_;
  bool busy_ = false;
  double cpu_ = 0;
};

int Measure(uint32_t workers, int seconds) {
  const size_t before = mallinfo2().uordblks;
  Cluster cluster(workers);
  const auto say = [&](const char* what, double divisor, const char* unit) {
    const CoordinatorView view = cluster.View();
    const bool steps = view.phase == Phase::kRunning;
    std::cout << absl::StrFormat("%-12s %10.3f %s, %d commands, generation %s%s\n", what, cluster.TakeCpu() / divisor,
                                 unit, cluster.TakeSent(), view.generation.ToString(),
                                 steps ? "" : ", which does not step");
  };
  say("cold start", 1, "CPU s");
  std::cout << absl::StrFormat("%-12s %10d bytes per worker\n", "memory", (mallinfo2().uordblks - before) / workers);
  cluster.Train(seconds);
  say("steady", seconds, "of a core");
  cluster.KillFirst();
  cluster.PassTime(absl::Milliseconds(100));
  say("kill", 1, "CPU s");
  cluster.Train(1);
  cluster.TakeCpu();
  cluster.Join();
  cluster.PassTime(absl::Milliseconds(100));
  say("join", 1, "CPU s");
  return 0;
}

}  // namespace
}  // namespace lockstep::chief

int main(int argc, char** argv) {
  CLI::App app("CPU and memory of the chief's core with many workers");
  uint32_t workers = 1000;
  int seconds = 10;
  app.add_option("--workers", workers, "how many");
  app.add_option("--seconds", seconds, "of steady training");
  CLI11_PARSE(app, argc, argv);
  return lockstep::chief::Measure(workers, seconds);
}
