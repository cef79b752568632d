// A whole worker process as a function: `lockstep worker` and the binary lockstep-worker both call it.
//
// Threading: call it once, from the main thread, before other threads exist: it handles SIGTERM, SIGINT and SIGHUP.
#ifndef LOCKSTEP_WORKER_SESSION_WORKER_MAIN_H_
#define LOCKSTEP_WORKER_SESSION_WORKER_MAIN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/notice/notices.h"
#include "worker/session/data_roots.h"

namespace lockstep::worker {

struct WorkerOptions {
  // The chief's HOST:PORT. Exactly one of this, `chief_file` and `chief_etcd` is given.
  std::string chief;
  // A file with the chief's address (DIR/chief/address), read at every attempt to connect. DIR may be in a bucket,
  // s3://BUCKET/PREFIX; then the newest record of the job's log gives the address.
  std::string chief_file;
  // The job's URL in etcd (common/etcd/etcd_url.h): the address of the newest chief is queried at every attempt.
  std::string chief_etcd;
  // A file with the job's token (DIR/chief/token), possibly in a bucket; empty: the variable LOCKSTEP_TOKEN.
  std::string token_file;
  // Preferred name; empty: the chief chooses one.
  std::string name;
  // The address of this machine to which peers connect; empty: the source address of packets to the chief.
  std::string peer_host;
  // The device to compute on: auto, cpu, cuda or cuda:N.
  std::string device = "auto";
  // The worker's number on its machine: without a number in `device`, workers take GPUs in turn.
  int local_rank = 0;
  // The paths of the job's data on this machine.
  std::vector<DataRoot> data_roots;
  // The HOST:PORT of health and metrics pages; empty: none.
  std::string http;
  // The sources, besides SIGTERM, of the notice that the machine is taken away.
  NoticeOptions notices;
  // The time limit for reaching the chief for the first time; then the worker exits with 69.
  int connect_timeout_s = 60;
  // If not empty, all events and actions of the core are recorded in this directory, one file per start.
  std::string record_directory;
  // For people: which options were taken from the environment; "": none.
  std::string assumed;
  // A pipe to which the cause of a failure is written, for the supervisor to report; -1: none.
  int cause_fd = -1;
};

// Executes this program again with the same arguments in the current environment (see ClearKernelEnvironment of
// worker/device/host/environment.h). Returns only on failure.
absl::Status ExecuteAgain();

// Runs until the job is done or the worker has left it; returns the exit code. Blocks.
int WorkerMain(const WorkerOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_WORKER_MAIN_H_
