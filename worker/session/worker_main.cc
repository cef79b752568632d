#include "worker/session/worker_main.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/naming.h"
#include "common/clock/clock.h"
#include "common/etcd/etcd_client.h"
#include "common/job_place/job_place.h"
#include "common/liveness/dump.h"
#include "common/log/log.h"
#include "common/net/chief_channel.h"
#include "common/net/descriptors.h"
#include "common/net/rpc.h"
#include "common/net/token.h"
#include "common/service_manager/service_manager.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/sync/signal_thread.h"
#include "common/sync/stop_signals.h"
#include "worker/collectives/sockets/peer_listener.h"
#include "worker/device/choice/device_choice.h"
#include "worker/device/host/environment.h"
#include "worker/metrics/worker_page.h"
#include "worker/notice/notices.h"
#include "worker/session/end_of_process.h"
#include "worker/session/peer_host.h"
#include "worker/session/session_loop.h"
#include "worker/step/process_memory.h"

namespace lockstep::worker {
namespace {

// How long the threads of a worker that has said its last word may take to end.
constexpr absl::Duration kEndLimit = absl::Seconds(2);
// A chief that starts beside this worker has made its token by then.
constexpr absl::Duration kSayAfter = absl::Seconds(1);
constexpr uint64_t kMaxTokenBytes = 4096;
constexpr timespec kTokenPause{.tv_sec = 0, .tv_nsec = 50'000'000};
constexpr timespec kTokenPauseOfBucket{.tv_sec = 1, .tv_nsec = 0};  // whose answers cost time and money

Incarnation NewIncarnation() {
  Incarnation incarnation;
  while (incarnation.IsNone()) {
    if (getrandom(&incarnation.high, sizeof incarnation.high, 0) < 0) break;
    if (getrandom(&incarnation.low, sizeof incarnation.low, 0) < 0) break;
  }
  return incarnation;
}

int Fail(const absl::Status& status, int code) {
  WriteLastLine(status, code);
  return code;
}

// It was asked to leave before it joined.
int EndPreempted(const absl::Status& why) {
  LS_LOG(info, why.message());
  FlushLog();
  return kExitPreempted;
}

// From `file`, which may be in a bucket. Codes as ReadCallerToken, and of the storage.
absl::StatusOr<std::string> ReadTokenAt(const std::string& file) {
  absl::string_view url = file;
  if (!IsInBucket(file)) return ReadCallerToken(file);
  if (!absl::ConsumeSuffix(&url, absl::StrCat("/", layout::kToken))) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " is no token of a job; give the job with --job s3://BUCKET/PREFIX"));
  }
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(std::string(url)));
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(place->storage(), layout::kToken, kMaxTokenBytes));
  return std::string(absl::StripAsciiWhitespace(content));
}

// The token, waiting for a chief that has not made its file yet. Cancelled when a signal comes meanwhile.
absl::StatusOr<std::string> AwaitToken(const WorkerOptions& options, const sigset_t& signals) {
  const absl::Time begin = SteadyNow();
  bool said = false;
  for (;;) {
    absl::StatusOr<std::string> token = ReadTokenAt(options.token_file);
    const absl::Duration waited = SteadyNow() - begin;
    if (!absl::IsNotFound(token.status()) || options.token_file.empty()) return token;
    if (waited >= absl::Seconds(options.connect_timeout_s)) return token;
    if (waited >= kSayAfter && !std::exchange(said, true)) {
      LS_LOG(warn, "waiting for the job's token: ", token.status().message(),
             ". The chief makes DIR/chief/token when it starts; is --token-file that one?");
    }
    const timespec& pause = IsInBucket(options.token_file) ? kTokenPauseOfBucket : kTokenPause;
    const int signal = sigtimedwait(&signals, nullptr, &pause);
    if (signal > 0 && signal != SIGUSR1) return absl::CancelledError("asked to leave before it joined");
  }
}

// No chief has made the token yet; one that is wrong is another matter.
int CodeWithoutKey(const WorkerOptions& options, const absl::Status& status) {
  return absl::IsNotFound(status) && !options.token_file.empty() ? kExitChiefUnreachable : kExitBadToken;
}

bool IsLoopback(absl::string_view host) {
  return absl::StartsWith(host, "127.") || host == "localhost" || host == "::1";
}

// The logs of the job's directory, where an option names a file of it; "" otherwise.
std::string DumpFolder(const WorkerOptions& options) {
  for (const std::string& file : {options.chief_file, options.token_file}) {
    if (IsInBucket(file)) continue;
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    if (folder.filename() == layout::kLogs) return folder.string();
    if (folder.filename() == "chief") return (folder.parent_path() / layout::kLogs).string();
  }
  return "";
}

// Exactly one place of the chief, and one that can be. Warns of a worker that no other machine would reach.
absl::Status CheckChiefOptions(const WorkerOptions& options) {
  const int given = !options.chief.empty() + !options.chief_file.empty() + !options.chief_etcd.empty();
  if (given != 1) return absl::InvalidArgumentError("give the chief's address: --chief HOST:PORT");
  if (!options.chief_etcd.empty()) return EtcdClient::Open(options.chief_etcd).status();
  if (options.chief.empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(options.chief));
  if (!IsLoopback(address.host) && !options.peer_host.empty() && IsLoopback(options.peer_host)) {
    LS_LOG(warn, "the chief is at ", address.host, ", but this worker listens for the others on ", options.peer_host,
           " alone: workers of other machines cannot reach it. Give --peer-host ADDRESS, one of this machine's");
  }
  return absl::OkStatus();
}

// Where the other workers reach this one: as it was told, or by the way to the chief, whose address is waited for.
absl::StatusOr<std::string> PeerHost(const WorkerOptions& options, const ChiefLocation& location,
                                     const sigset_t& signals) {
  if (!options.peer_host.empty()) return options.peer_host;
  const absl::Duration limit = absl::Seconds(options.connect_timeout_s);
  absl::StatusOr<std::string> own = AwaitAddressTowards(location, limit, signals);
  if (own.ok() || absl::IsCancelled(own.status())) return own;
  const std::string where = absl::StrCat(options.chief, options.chief_file, options.chief_etcd);
  return absl::UnavailableError(absl::StrCat("no chief was found at ", where, " for ", absl::FormatDuration(limit),
                                             ": ", own.status().message(), ". Is it running, is the place right?"));
}

// Null where no address is given.
absl::StatusOr<std::unique_ptr<HttpServer>> StartPage(const std::string& listen, SessionLoop& loop) {
  if (listen.empty()) return nullptr;
  LS_ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> page,
                      ServeWorkerPage(
                          listen, [&loop] { return loop.Present(); }, [&loop] { return loop.SinceTurn(); }));
  LS_LOG(info, "metrics: http://", page->address(), "/metrics");
  return page;
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

absl::Status ExecuteAgain() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string arguments{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<char*> argv;
  for (size_t at = 0; at < arguments.size(); at += std::strlen(&arguments[at]) + 1) argv.push_back(&arguments[at]);
  argv.push_back(nullptr);
  // By its path, for the name in the process table; the link serves where that is gone.
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) > 0) execv(path, argv.data());
  execv("/proc/self/exe", argv.data());
  return absl::ErrnoToStatus(errno, "cannot start this program again without the settings of kernel libraries");
}

int WorkerMain(const WorkerOptions& options) {
  ReturnLargeBlocks();
  InitLog({.part = "worker", .worker = options.name});
  HandOverLastLine(options.cause_fd, /*also_logged=*/true);
  if (device::ClearKernelEnvironment().must_restart) return Fail(ExecuteAgain(), kExitBug);
  WrapForeignOutput();
  const sigset_t signals = BlockStopSignals();
  SurviveTerminal();
  ServiceManager service;
  RaiseDescriptorLimit();  // one for each peer, and more while they connect
  StartLiveness(options.name.empty() ? "worker" : options.name, DumpFolder(options));
  if (!options.assumed.empty()) LS_LOG(info, options.assumed);

  const absl::Status usable = CheckChiefOptions(options);
  if (!usable.ok()) return Fail(usable, kExitUsage);
  absl::StatusOr<device::WorkerDevice> device = device::ParseWorkerDevice(options.device);
  if (!device.ok()) return Fail(device.status(), kExitUsage);
  device->local_rank = options.local_rank;
  const absl::StatusOr<NoticePlan> notices = PlanNotices(options.notices);
  if (!notices.ok()) return Fail(notices.status(), kExitUsage);
  const absl::StatusOr<std::string> token = AwaitToken(options, signals);
  if (absl::IsCancelled(token.status())) return EndPreempted(token.status());
  absl::StatusOr<CallerKey> key =
      token.ok() ? CallerKeyOf(*token, Role::kJoin) : absl::StatusOr<CallerKey>(token.status());
  if (!key.ok()) return Fail(key.status(), CodeWithoutKey(options, key.status()));
  if (!options.chief_file.empty() && !IsInBucket(options.chief_file)) key->socket = SocketBeside(options.chief_file);

  const ChiefLocation location{options.chief, options.chief_file, *key, options.chief_etcd};
  const absl::StatusOr<std::string> peer_host = PeerHost(options, location, signals);
  if (absl::IsCancelled(peer_host.status())) return EndPreempted(peer_host.status());
  if (!peer_host.ok()) return Fail(peer_host.status(), kExitChiefUnreachable);

  SessionLoop::Options loop_options;
  loop_options.core.incarnation = NewIncarnation();
  const auto listener = PeerListener::Start(*peer_host, loop_options.core.incarnation);
  if (!listener.ok()) return Fail(listener.status(), kExitBadJob);
  loop_options.core.preferred_name = options.name;
  loop_options.core.host = HostName();
  loop_options.core.peer_address = (*listener)->address();
  loop_options.core.device = device::WorkerDeviceText(*device);
  loop_options.device = *device;
  loop_options.data_roots = options.data_roots;
  loop_options.chief = location;
  loop_options.peer_host = *peer_host;
  loop_options.peer_listener = listener->get();
  loop_options.connect_timeout = absl::Seconds(options.connect_timeout_s);
  if (!options.record_directory.empty()) {
    loop_options.record_path = absl::StrCat(options.record_directory, "/worker-", getpid(), "-",
                                            loop_options.core.incarnation.ToString().substr(0, 8), ".record");
  }
  SessionLoop loop(std::move(loop_options));
  const SignalThread signal_thread(signals, [&](int) {
    service.Stopping();
    loop.Terminate();
  });
  const auto watches = WatchNotices(*notices, [&loop](const Notice& notice) { loop.Terminate(notice.grace); });
  const auto page = StartPage(options.http, loop);
  if (!page.ok()) return Fail(page.status(), absl::IsInvalidArgument(page.status()) ? kExitUsage : kExitBadJob);
  int code = kExitBug;
  {
    const ServiceManager::Watch service_watch(
        &service, {[&loop] { return loop.SinceTurn(); }, [&loop] { return loop.Status(); }});
    code = loop.Run();
  }
  if (code != kExitDone && code != kExitPreempted) WriteLastLine(FirstFailure(), code);
  FlushLog();
  // A computation that does not stop is joined below: the process must not wait for it.
  EndProcessWithin(kEndLimit, code);
  return code;
}

}  // namespace lockstep::worker
