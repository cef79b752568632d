// How fast gradients are summed, and how fast a broken generation is noticed, on this machine over loopback. Prints
// one JSON object per line; figures that are compared are taken in turns within one run (A B C A B C), medians.
//
//   allreduce_bench [--values N] [--rounds N] [--encrypted 0|1] [--only exact|values|float|gloo_float|raw_tcp|word]
#include <arpa/inet.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/contracts/communicator_directory_store.h"
#include "tests/contracts/local_sockets.h"
#include "worker/arithmetic/bucketer.h"
#include "worker/arithmetic/exact_sum.h"

namespace lockstep::worker {
namespace {

using BenchClock = std::chrono::steady_clock;

double Seconds(BenchClock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Of all threads of this process, user and system: what the ranks together cost, however busy the machine is.
double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "allreduce_bench: %s\n", what.c_str());
  std::_Exit(1);
}

void Require(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

// Each run of `body` by itself, in seconds.
double BestOf(int rounds, const std::function<void()>& body) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto start = BenchClock::now();
    body();
    best = std::min(best, Seconds(BenchClock::now() - start));
  }
  return best;
}

void BenchExactSum(int64_t values) {
  const auto n = static_cast<size_t>(values);
  std::vector<float> gradient(n);
  for (size_t i = 0; i < n; ++i) {
    gradient[i] = static_cast<float>(static_cast<int>(i * 2654435761u % 2001) - 1000) * 1e-4f;
  }
  std::vector<int64_t> sums(n), other(n, 1);
  std::vector<float> out(n), kept(n, 0.25f);
  const int32_t exponent = FittingExponent(QuantizeStore(gradient, kExponentUnset, absl::MakeSpan(sums)));
  const double ns = 1e9 / static_cast<double>(values);
  const double scale = 0x1p40;
  const double store = BestOf(20, [&] { QuantizeStore(gradient, exponent, absl::MakeSpan(sums)); });
  const double add = BestOf(20, [&] { QuantizeAdd(gradient, exponent, absl::MakeSpan(sums)); });
  const double scalar =
      BestOf(5, [&] { exact_sum_internal::ScalarQuantize(gradient.data(), values, scale, true, sums.data()); });
  const double sum = BestOf(20, [&] { AddInto(other, absl::MakeSpan(sums)); });
  const double back = BestOf(20, [&] { Dequantize(sums, exponent, absl::MakeSpan(out)); });
  const std::vector<ExactAddends> two = {{.values = gradient}, {.values = kept}};
  const double of_two = BestOf(20, [&] { SumExactly(two, exponent, absl::MakeSpan(out)); });
  const double copy = BestOf(20, [&] { std::memcpy(out.data(), gradient.data(), n * sizeof(float)); });
  std::printf(
      "{\"bench\":\"exact_sum\",\"values\":%lld,\"quantize_store_ns\":%.3f,\"quantize_add_ns\":%.3f,"
      "\"quantize_add_scalar_ns\":%.3f,\"add_into_ns\":%.3f,\"dequantize_ns\":%.3f,\"sum_of_two_ns\":%.3f,"
      "\"memcpy_float_ns\":%.3f}\n",
      static_cast<long long>(values), store * ns, add * ns, scalar * ns, sum * ns, back * ns, of_two * ns, copy * ns);
}

// A ring of plain sockets: each rank sends to the next and receives from the one before.
class TcpRing {
 public:
  explicit TcpRing(int size) : out_(static_cast<size_t>(size)), in_(static_cast<size_t>(size)) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      Fail("cannot listen");
    }
    for (int rank = 0; rank < size; ++rank) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) Fail("cannot connect");
      out_[static_cast<size_t>(rank)] = fd;
      in_[static_cast<size_t>((rank + 1) % size)] = accept(listener, nullptr, nullptr);
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    close(listener);
  }
  ~TcpRing() {
    for (const int fd : out_) close(fd);
    for (const int fd : in_) close(fd);
  }

  // Moves `bytes` in both directions at once, as an all-reduce of that much traffic would at best.
  void Exchange(size_t rank, char* from, char* to, size_t bytes) {
    std::thread sender([&] { Move(bytes, [&](size_t at, size_t n) { return send(out_[rank], from + at, n, 0); }); });
    Move(bytes, [&](size_t at, size_t n) { return recv(in_[rank], to + at, n, 0); });
    sender.join();
  }

 private:
  static void Move(size_t bytes, const std::function<ssize_t(size_t, size_t)>& step) {
    for (size_t at = 0; at < bytes;) {
      const ssize_t n = step(at, bytes - at);
      if (n <= 0) Fail("a socket broke");
      at += static_cast<size_t>(n);
    }
  }

  std::vector<int> out_;
  std::vector<int> in_;
};

std::string g_only;               // of two ranks nothing but this is measured
std::atomic<uint32_t> g_largest;  // so that it is looked for

PeerSecurity g_security = PeerSecurity::kEncryptedBeyondHost;

absl::StatusOr<std::unique_ptr<Communicator>> FormRank(int rank, int size, RendezvousStore& store) {
  SocketForming::Options options;
  options.group.generation = {.term = 1, .counter = 1};
  options.group.rank = rank;
  options.group.size = size;
  options.security = g_security;
  return FormSockets(options, store);
}

std::shared_ptr<gloo::Context> FormStock(gloo::rendezvous::Store& store, int rank, int size) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

void StockAllReduce(const std::shared_ptr<gloo::Context>& context, std::vector<float>& values) {
  gloo::AllreduceOptions options(context);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction([](void* c, const void* a, const void* b, size_t n) { gloo::sum<float>(c, a, b, n); });
  gloo::allreduce(options);
}

constexpr int32_t kExponent = -40;

void ExactAllReduce(Communicator& comm, const ExactAddends& addends, std::vector<float>& out) {
  const std::vector<ExactRun> runs = {{.begin = 0, .size = static_cast<int64_t>(out.size()), .exponent = kExponent}};
  Require(comm.AllReduceExact({}, addends, absl::MakeSpan(out), runs)->Wait(absl::Seconds(60)));
}

// The whole of one bucket's life on a rank of several logical shards, and on one of one.
void ReduceSums(Communicator& comm, const std::vector<float>& gradient, std::vector<int64_t>& sums,
                std::vector<float>& out) {
  QuantizeStore(gradient, kExponent, absl::MakeSpan(sums));
  ExactAllReduce(comm, {.integers = sums}, out);
}
void ReduceValues(Communicator& comm, const std::vector<float>& gradient, std::vector<float>& kept,
                  std::vector<float>& out) {
  std::copy(gradient.begin(), gradient.end(), kept.begin());
  g_largest = LargestMagnitude(kept);
  ExactAllReduce(comm, {.values = kept}, out);
}

enum What { kExact, kValues, kFloat, kStock, kRaw, kWord, kWhats };
constexpr const char* kNames[kWhats] = {"exact", "values", "float", "gloo_float", "raw_tcp", "word"};

void BenchRanks(int size, int64_t values, int rounds) {
  const auto n = static_cast<size_t>(values);
  InProcessStore store;
  gloo::rendezvous::HashStore stock_store;
  TcpRing ring(size);
  std::barrier together(size);
  std::vector<std::vector<double>> times(kWhats), cpu_times(kWhats);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto formed = FormRank(rank, size, store);
      Require(formed.status());
      Communicator& comm = **formed;
      const auto stock = FormStock(stock_store, rank, size);
      std::vector<float> gradient(n, 0.25f), kept(n), out(n), from(n);
      std::vector<int64_t> sums(n);
      std::vector<char> word(static_cast<size_t>(size) * 512);
      const std::vector<int64_t> word_blocks(static_cast<size_t>(size), 512);
      const size_t traffic = n * sizeof(float) * 2 * static_cast<size_t>(size - 1) / static_cast<size_t>(size);
      std::vector<char> raw(traffic), raw_in(traffic);
      const std::vector<std::function<void()>> bodies = {
          [&] { ReduceSums(comm, gradient, sums, out); },
          [&] { ReduceValues(comm, gradient, kept, out); },
          [&] { Require(comm.AllReduceSum(Tag{}, absl::MakeSpan(from))->Wait(absl::Seconds(60))); },
          [&] { StockAllReduce(stock, from); },
          [&] { ring.Exchange(static_cast<size_t>(rank), raw.data(), raw_in.data(), traffic); },
          [&] { Require(comm.AllGather({}, absl::MakeSpan(word), word_blocks)->Wait(absl::Seconds(60))); },
      };
      for (int round = -2; round < rounds; ++round) {
        for (size_t what = 0; what < kWhats; ++what) {
          if (!g_only.empty() && g_only != kNames[what]) continue;
          together.arrive_and_wait();
          const auto start = BenchClock::now();
          const double cpu_start = CpuSeconds();
          bodies[what]();
          together.arrive_and_wait();
          if (rank != 0 || round < 0) continue;
          times[what].push_back(Seconds(BenchClock::now() - start));
          cpu_times[what].push_back(CpuSeconds() - cpu_start);
        }
      }
      together.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("{\"bench\":\"allreduce\",\"ranks\":%d,\"values\":%lld", size, static_cast<long long>(values));
  for (size_t what = 0; what < kWhats; ++what) {
    if (times[what].empty()) continue;
    std::printf(",\"%s_ms\":%.3f,\"%s_cpu_ms\":%.3f", kNames[what], Median(times[what]) * 1e3, kNames[what],
                Median(cpu_times[what]) * 1e3);
  }
  for (const What what : {kExact, kValues}) {
    if (!g_only.empty()) break;
    std::printf(",\"%s_over_gloo\":%.2f,\"%s_over_raw\":%.2f,\"%s_over_gloo_cpu\":%.2f", kNames[what],
                Median(times[what]) / Median(times[kStock]), kNames[what], Median(times[what]) / Median(times[kRaw]),
                kNames[what], Median(cpu_times[what]) / Median(cpu_times[kStock]));
  }
  std::printf("}\n");
  std::fflush(stdout);
}

// Instants that processes leave for one another.
struct Instants {
  std::atomic<int> waiting;
  std::atomic<int64_t> formed_ns;  // the longest forming
  std::atomic<int64_t> ended_ns[8];
};

int64_t NowNs() { return BenchClock::now().time_since_epoch().count(); }

// Ranks are processes that block in a call which the last rank never makes; it aborts, or is killed.
void BenchBreak(int size, bool killed, int rounds) {
  auto* shared = static_cast<Instants*>(
      mmap(nullptr, sizeof(Instants), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<double> ended, formed_times;
  for (int round = 0; round < rounds; ++round) {
    char directory[] = "/tmp/allreduce-bench-XXXXXX";
    if (mkdtemp(directory) == nullptr) Fail("mkdtemp");
    shared->waiting = 0;
    shared->formed_ns = 0;
    std::vector<pid_t> children;
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        DirectoryStore store(directory);
        const int64_t begin = NowNs();
        auto formed = FormRank(rank, size, store);
        Require(formed.status());
        const int64_t took = NowNs() - begin;
        if (took > shared->formed_ns) shared->formed_ns = took;
        std::vector<int64_t> values(200000);
        Handle handle;
        if (rank != size - 1) handle = (*formed)->AllReduceSum({}, absl::MakeSpan(values));
        ++shared->waiting;
        if (handle != nullptr) {
          (void)handle->Wait(absl::Seconds(60));
          shared->ended_ns[rank] = NowNs();
          _exit(0);
        }
        while (shared->waiting != size) usleep(100);
        usleep(30000);
        shared->ended_ns[rank] = NowNs();
        if (!killed) (*formed)->Abort(absl::UnavailableError("verdict"));
        pause();
      }
      children.push_back(child);
    }
    if (killed) {
      while (shared->waiting != size) usleep(100);
      usleep(60000);
      shared->ended_ns[size - 1] = NowNs();
      kill(children.back(), SIGKILL);
    }
    for (int rank = 0; rank + 1 < size; ++rank) waitpid(children[static_cast<size_t>(rank)], nullptr, 0);
    if (!killed) kill(children.back(), SIGKILL);
    waitpid(children.back(), nullptr, 0);
    int64_t last = 0;
    for (int rank = 0; rank + 1 < size; ++rank) last = std::max<int64_t>(last, shared->ended_ns[rank]);
    ended.push_back(static_cast<double>(last - shared->ended_ns[size - 1]) * 1e-6);
    formed_times.push_back(static_cast<double>(shared->formed_ns) * 1e-6);
    std::filesystem::remove_all(directory);
  }
  munmap(shared, sizeof(Instants));
  std::printf(
      "{\"bench\":\"%s\",\"ranks\":%d,\"rounds\":%d,\"last_rank_ends_ms\":%.3f,\"worst_ms\":%.3f,"
      "\"form_ms\":%.1f}\n",
      killed ? "peer_death" : "abort", size, rounds, Median(ended), *std::max_element(ended.begin(), ended.end()),
      Median(formed_times));
  std::fflush(stdout);
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  int64_t values = 2'750'000;
  int rounds = 15;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--values") {
      values = std::atoll(argv[i + 1]);
    } else if (std::string(argv[i]) == "--rounds") {
      rounds = std::atoi(argv[i + 1]);
    } else if (std::string(argv[i]) == "--encrypted") {
      if (std::atoi(argv[i + 1]) != 0) lockstep::worker::g_security = lockstep::worker::PeerSecurity::kEncrypted;
    } else if (std::string(argv[i]) == "--only") {
      lockstep::worker::g_only = argv[i + 1];
    } else {
      std::fprintf(stderr, "usage: allreduce_bench [--values N] [--rounds N] [--encrypted 0|1] [--only NAME]\n");
      return 64;
    }
  }
  const auto& names = lockstep::worker::kNames;
  if (const std::string& only = lockstep::worker::g_only; !only.empty()) {
    if (std::find(std::begin(names), std::end(names), only) == std::end(names)) {
      std::fprintf(stderr, "allreduce_bench: nothing is called '%s' (see the head of the file)\n", only.c_str());
      return 64;
    }
    lockstep::worker::BenchRanks(2, values, rounds);
    return 0;
  }
  // Processes are forked before any thread has run.
  for (const int size : {2, 3, 4}) {
    lockstep::worker::BenchBreak(size, false, rounds);
    lockstep::worker::BenchBreak(size, true, rounds);
  }
  lockstep::worker::BenchExactSum(61'706);  // LeNet's
  lockstep::worker::BenchExactSum(values);
  for (const int size : {2, 3, 4}) {
    lockstep::worker::BenchRanks(size, 61'706, rounds * 4);
    lockstep::worker::BenchRanks(size, values, rounds);
  }
  return 0;
}
