#include "chief/server/chief_main.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "chief/core/storage_trouble.h"
#include "chief/logs/log_keeper.h"
#include "chief/server/address_file.h"
#include "chief/server/admin_service.h"
#include "chief/server/chief_loop.h"
#include "chief/server/chief_server.h"
#include "chief/server/job_directory.h"
#include "chief/server/job_page.h"
#include "chief/server/job_setup.h"
#include "chief/server/job_store.h"
#include "chief/server/older_checks.h"
#include "chief/server/session_registry.h"
#include "chief/server/session_service.h"
#include "chief/server/watchdog.h"
#include "chief/standby/beat_thread.h"
#include "chief/standby/owner_lease.h"
#include "chief/standby/stand_by.h"
#include "common/checkpoint_format/naming.h"
#include "common/clock/clock.h"
#include "common/etcd/etcd_client.h"
#include "common/job_place/job_place.h"
#include "common/liveness/dump.h"
#include "common/log/log.h"
#include "common/log/output.h"
#include "common/net/chief_channel.h"
#include "common/net/descriptors.h"
#include "common/service_manager/service_manager.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/may_pass.h"
#include "common/sync/signal_thread.h"
#include "common/sync/stop_signals.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kFlushLimit = absl::Seconds(1);
// Of a worker: its session, its heartbeats, and what it fetches and sends. Of the chief itself: files and listeners.
constexpr uint64_t kDescriptorsPerWorker = 4;
constexpr uint64_t kOwnDescriptors = 64;

// Of this machine; empty for a job in a bucket: dumps go to this process's own log then.
std::string LogFolder(const std::string& directory) {
  return IsInBucket(directory) ? "" : absl::StrCat(directory, "/", layout::kLogs);
}

// The last words of a chief that ends before it serves: a cause, or why it was stopped.
int EndEarly(const absl::Status& status, int code) {
  if (code == kExitPreempted || code == kExitDone) {
    LS_LOG(info, status.message());
    FlushLog();
  } else {
    WriteLastLine(status, code);
  }
  return code;
}

// For the workers of this machine; "" where there is no folder for it.
std::string SocketOf(const ChiefOptions& options, const std::string& directory) {
  if (!options.address_file.empty()) return SocketBeside(options.address_file);
  return IsInBucket(directory) ? "" : SocketBeside(JoinPath(directory, layout::kAddress));
}

// A limit of the system that is too low is told before workers are refused by it.
void RaiseDescriptorLimitFor(const JobPolicy& policy) {
  const uint64_t workers = std::max(policy.min_workers, policy.expected_workers);
  const uint64_t needed = (workers * kDescriptorsPerWorker + kOwnDescriptors) * 4 / 3;  // a quarter is for strangers
  if (const uint64_t limit = RaiseDescriptorLimit(); limit < needed) {
    LS_LOG(warn, workers, " workers may need ", needed, " open files and sockets here; the hard limit is ", limit,
           ". Raise it (ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile= of containers)");
  }
}

// Makes attempts until one succeeds, fails in a way that does not pass, or `limit` is over. Cancelled when a signal
// comes meanwhile.
absl::Status Outlast(absl::Duration limit, const sigset_t& signals, const std::function<absl::Status()>& attempt) {
  SteadyClock clock;
  StorageTrouble trouble;
  const absl::Time begin = clock.Now();
  while (true) {
    const absl::Status status = attempt();
    const absl::Time now = clock.Now();
    if (status.ok() || !IsOutage(status) || now - begin >= limit) return status;
    if (trouble.Refused(now, std::string(status.message()))) {
      LS_LOG(error, trouble.Text(now), ". It is tried again for ", absl::FormatDuration(limit),
             ", as long as workers keep their state; a signal ends the waiting");
    }
    const timespec wait = absl::ToTimespec(trouble.retry_at() - now);
    const int signal = sigtimedwait(&signals, nullptr, &wait);
    if (signal > 0 && signal != SIGUSR1) {  // that one means nothing from others (SignalThread)
      return absl::CancelledError(absl::StrCat("stopped while the storage refuses: ", status.message()));
    }
  }
}

// The job's directory, taken over. Where the job has been trained already, workers may hold steps that nobody has
// saved: an outage of the storage is waited for then.
absl::StatusOr<std::unique_ptr<JobStore>> OpenStore(JobSetup& setup, std::optional<int64_t> succeeds,
                                                    const sigset_t& signals, int& exit_code) {
  absl::StatusOr<std::unique_ptr<JobStore>> store;
  const bool begun = MayHoldCheckpoint(setup.directory);
  const absl::Duration limit = begun ? setup.policy.training.chief_timeout : absl::ZeroDuration();
  const absl::Status opened = Outlast(limit, signals, [&] {
    store = JobStore::Open(setup, exit_code, succeeds);
    return store.status();
  });
  if (absl::IsCancelled(opened)) {
    exit_code = kExitPreempted;
    return opened;
  }
  return store;
}

// StandBy, for which the service manager takes this process as ready.
absl::StatusOr<int64_t> AwaitTurn(const std::string& directory, EtcdClient* etcd, const sigset_t& signals,
                                  ServiceManager& service, int& exit_code) {
  const ServiceManager::Watch watch(&service, {[] { return absl::ZeroDuration(); }, [] { return "standing by"; }});
  return StandBy(directory, etcd, signals, exit_code);
}

// The job's directory. A standby chief first waits for its turn; of several the first to claim has it, and the others
// stand by again.
absl::StatusOr<std::unique_ptr<JobStore>> OpenInTurn(const ChiefOptions& options, EtcdClient* etcd, JobSetup& setup,
                                                     const sigset_t& signals, ServiceManager& service, int& exit_code) {
  if (!options.standby) return OpenStore(setup, std::nullopt, signals, exit_code);
  for (;;) {
    LS_ASSIGN_OR_RETURN(const int64_t succeeds, AwaitTurn(setup.directory, etcd, signals, service, exit_code));
    auto store = OpenStore(setup, succeeds, signals, exit_code);
    if (!IsFenced(store.status())) return store;
    LS_LOG(info, "another chief was faster: ", store.status().message());
  }
}

// For the service manager; "" while the loop does not answer.
std::string ServiceStatus(ChiefLoop& loop) {
  const absl::StatusOr<proto::StatusReply> status = loop.Ask();
  if (!status.ok()) return "";
  std::string line = absl::StrCat(absl::AsciiStrToLower(status->phase()), ", step ", status->step());
  if (std::isfinite(status->eta_seconds())) {
    absl::StrAppend(&line, ", ", absl::FormatDuration(absl::Seconds(std::round(status->eta_seconds()))), " to go");
  }
  absl::StrAppend(&line, ", workers: ", status->workers_size());
  for (const std::string* trouble : {&status->waiting_for(), &status->storage_trouble()}) {
    if (!trouble->empty()) absl::StrAppend(&line, "; ", *trouble);
  }
  return line;
}

// A core file tells the rest.
[[noreturn]] void EndHungProcess(absl::Duration stands) {
  alarm(8);  // a disk or a log that hangs as well must not keep it
  const std::string what =
      absl::StrCat("the chief's loop has stood for ", absl::FormatDuration(absl::Trunc(stands, absl::Seconds(1))));
  LS_LOG(error, what, ", which is a defect: this process ends itself, so that its supervisor starts it again",
         DumpForLine(what));
  FlushLog();
  std::abort();
}

// Puts into the log that this chief ends with `code`. Returns how it ends: with 76 when another one has followed it,
// whose it is then to say how the job ends.
int RecordEnd(JobStore& store, int code) {
  if (code == kExitFenced) return code;
  const absl::Status told = store.RecordEnd(code);
  if (IsFenced(told)) {
    LS_LOG(warn, "this chief ends with ", kExitFenced, " in place of ", code, ": ", told.message());
    return kExitFenced;
  }
  if (!told.ok()) LS_LOG(warn, "the end of this chief was not recorded: ", told.message());
  return code;
}

// Behind which step hooks stop the job. Where it was stopped, it goes on; where a chief was killed, a stop at the
// checkpoint's own step may not have come to its end.
uint64_t StopAfter(JobStore& store) {
  const uint64_t step = store.recovered().checkpoint.step;
  const absl::StatusOr<WorkerStatsFile> before = store.ReadStats();
  const bool killed =
      before.ok() && before->job().has_hooks() && before->job().hooks().ended() < static_cast<int64_t>(step);
  return killed ? step - 1 : step;
}

// What this process says until it ends, for the job's directory.
class KeptLog {
 public:
  KeptLog() {
    SetLogTap([this](const LogRecord& record) { keeper_.Keep(record); });
  }
  ~KeptLog() { SetLogTap(nullptr); }
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;
  LogKeeper* keeper() { return &keeper_; }

 private:
  LogKeeper keeper_;
};

ChiefLoop::Options LoopOptions(const ChiefOptions& options, JobSetup& setup, JobStore& store, SessionRegistry& sessions,
                               KeptLog& log) {
  ChiefLoop::Options loop;
  loop.setup = &setup;
  loop.config = {setup.policy, store.recovered()};
  loop.config.policy.training.stop_after = StopAfter(store);
  loop.store = &store;
  loop.sessions = &sessions;
  loop.log = log.keeper();
  loop.live = StyleOf(STDOUT_FILENO).live && CurrentLogFormat() == LogFormat::text;
  if (!options.record_directory.empty()) {
    loop.record_path = absl::StrCat(options.record_directory, "/chief-", store.recovered().term, ".record");
  }
  return loop;
}

int Serve(const ChiefOptions& options, EtcdClient* etcd, JobSetup& setup, JobStore& store, const sigset_t& signals,
          ServiceManager& service, KeptLog& log) {
  SessionRegistry sessions;
  ChiefLoop loop(LoopOptions(options, setup, store, sessions, log));
  ServiceContext context;
  context.job = setup.policy.job;
  context.term = store.recovered().term;
  context.store = &store;
  context.sessions = &sessions;
  context.post = [&loop](Event event, bool wait) { return loop.Post(std::move(event), wait); };
  context.since_turn = [&loop] { return loop.SinceTurn(); };
  SessionService session_service(&context);
  AdminService admin_service(&context, &loop);

  absl::StatusOr<std::unique_ptr<ChiefServer>> server =
      ChiefServer::Start({.listen = options.listen,
                          .earlier = store.earlier_address(),
                          .socket = SocketOf(options, setup.directory),
                          .token = store.token(),
                          .services = {&session_service, &admin_service},
                          .context = &context});
  if (!server.ok()) return EndEarly(server.status(), kExitBadJob);
  const std::string& address = (*server)->address();
  const absl::Status written = Outlast(setup.policy.training.chief_timeout, signals, [&] {
    const absl::Status own = store.WriteAddress(address);
    if (!own.ok() || options.address_file.empty()) return own;
    return WriteAddressFile(options.address_file, address);
  });
  std::optional<OwnerLease> lease;
  int code = IsFenced(written) ? kExitFenced : absl::IsCancelled(written) ? kExitPreempted : kExitStorage;
  if (written.ok()) {
    LS_LOG(info, "term ", store.recovered().term, ", listening on ", address, ", from ",
           store.recovered().checkpoint.ToString());
    const SignalThread signal_thread(signals, [&](int signal) {
      service.Stopping();
      const bool hands_over = signal == SIGTERM && !options.stops_on_sigterm;
      loop.Post(StopRequested{StopSignalName(signal), kExitPreempted, hands_over}, false);
    });
    const Watchdog watchdog([&loop] { return loop.SinceTurn(); }, EndHungProcess);
    const ServiceManager::Watch service_watch(
        &service, {[&loop] { return loop.SinceTurn(); }, [&loop] { return ServiceStatus(loop); }});
    const OlderChecks older_checks(&store);
    if (etcd != nullptr) {
      lease.emplace(etcd, store.recovered().term, address, [&] { return sessions.workers(); });
    }
    const std::unique_ptr<JobPage> page = JobPage::Start(
        {.http = setup.job.observe().http(), .directory = setup.directory, .store = &store, .loop = &loop});
    const BeatThread beat([&] { return store.Beat(); }, [&] { return sessions.workers(); });
    code = loop.Run([&] {
      absl::Status kept = store.KeepAddress();
      if (!IsFenced(kept) && !options.address_file.empty()) {
        kept.Update(RestoreAddressFile(options.address_file, address));
      }
      return kept;
    });
    sessions.BeginClosing();
    loop.Close();  // callers of the page are told at once that nobody answers any more
  } else if (code == kExitPreempted) {
    LS_LOG(info, written.message());
  } else {
    ReportFailure(written);
  }
  code = RecordEnd(store, code);
  lease.reset();  // behind the record of the end: a standby reads that then
  sessions.CloseAll(kFlushLimit, loop.handed_over());
  (*server)->Shutdown(kFlushLimit);
  loop.Close();
  if (code != kExitDone && code != kExitPreempted) WriteLastLine(FirstFailure(), code);
  if (code != kExitFenced) {
    if (written.ok()) loop.KeepEnd();
    loop.KeepLastLines();
  }
  return code;
}

// SetUpJob, which may read data for long, has changed nothing yet: a stop ends the process at once.
absl::StatusOr<JobSetup> SetUpUnlessStopped(const ChiefOptions& options, const sigset_t& signals, int& exit_code) {
  const SignalThread signal_thread(signals, [](int signal) {
    LS_LOG(info, "stopped by ", StopSignalName(signal), " while the job was being read; nothing has begun");
    FlushLog();
    _exit(kExitPreempted);
  });
  return SetUpJob(options, exit_code);
}

}  // namespace

int ChiefMain(const ChiefOptions& options) {
  InitLog({.part = "chief"});
  WrapForeignOutput();
  KeptLog log;
  HandOverLastLine(options.cause_fd, /*also_logged=*/false);
  const sigset_t signals = BlockStopSignals();
  SurviveTerminal();
  ServiceManager service;
  StartLiveness("chief", options.directory.empty() ? "" : LogFolder(options.directory));

  int exit_code = kExitBug;
  absl::StatusOr<JobSetup> setup = SetUpUnlessStopped(options, signals, exit_code);
  if (!setup.ok()) return EndEarly(setup.status(), exit_code);
  if (!IsInBucket(setup->directory)) SetDumpFolder(LogFolder(setup->directory));
  RaiseDescriptorLimitFor(setup->policy);
  std::unique_ptr<EtcdClient> etcd;
  if (!options.etcd.empty()) {
    auto opened = EtcdClient::Open(options.etcd);
    if (!opened.ok()) return EndEarly(opened.status(), kExitUsage);
    etcd = *std::move(opened);
  }
  const absl::StatusOr<std::unique_ptr<JobStore>> store =
      OpenInTurn(options, etcd.get(), *setup, signals, service, exit_code);
  if (!store.ok()) return EndEarly(store.status(), exit_code);
  const int code = Serve(options, etcd.get(), *setup, **store, signals, service, log);
  FlushLog();
  return code;
}

}  // namespace lockstep::chief
