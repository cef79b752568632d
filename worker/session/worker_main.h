// A whole worker process as a function: `lockstep worker` and the binary lockstep-worker both call it.
//
// Threading: call it once, from the main thread, before other threads exist: it takes SIGTERM, SIGINT and SIGHUP for
// itself.
#ifndef LOCKSTEP_WORKER_SESSION_WORKER_MAIN_H_
#define LOCKSTEP_WORKER_SESSION_WORKER_MAIN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/notice/notices.h"
#include "worker/session/data_roots.h"

namespace lockstep::worker {

struct WorkerOptions {
  // The chief, HOST:PORT. Exactly one of this, `chief_file` and `chief_etcd` is given.
  std::string chief;
  // A file that holds the chief's address (DIR/chief/address), read anew at every attempt to connect. DIR may be in a
  // bucket, s3://BUCKET/PREFIX: the newest record of the job's log gives the address then.
  std::string chief_file;
  // Where etcd knows of the job (common/etcd/etcd_url.h): the address of its newest chief is asked for at every
  // attempt.
  std::string chief_etcd;
  // File with the job's token (DIR/chief/token), also in a bucket; empty: the environment's LOCKSTEP_TOKEN.
  std::string token_file;
  // Preferred name; empty: the chief chooses one.
  std::string name;
  // The address of this machine under which peers connect to it; empty: the one that its packets to the chief leave
  // from.
  std::string peer_host;
  // Which of its machine's devices it computes on: auto, cpu, cuda or cuda:N.
  std::string device = "auto";
  // Which worker of its machine it is: without a number in `device`, workers take GPUs in turn.
  int local_rank = 0;
  // Where this machine has the job's data.
  std::vector<DataRoot> data_roots;
  // Where it serves health and metrics, HOST:PORT; empty: nowhere.
  std::string http;
  // What announces that its machine is taken away, besides SIGTERM.
  NoticeOptions notices;
  // How long to try to reach the chief for the first time before exiting with 69.
  int connect_timeout_s = 60;
  // Not empty: every event and action of the core is recorded in this directory, one file per start.
  std::string record_directory;
  // What was taken from the environment in place of options, for people; "": nothing.
  std::string assumed;
  // A pipe to the supervisor, which says why this process failed behind everybody's last words; -1: none.
  int cause_fd = -1;
};

// Runs this program from the start, with the same arguments in the present environment (see ClearKernelEnvironment of
// worker/device/host/environment.h). Returns only on failure.
absl::Status ExecuteAgain();

// Runs until the job is done or the worker has left it. Returns the exit code.
int WorkerMain(const WorkerOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_WORKER_MAIN_H_
