// A whole chief process as a function: `lockstep chief` and the binary lockstep-chief both call it.
//
// Threading: call it once, from the main thread, before other threads exist: it takes SIGTERM, SIGINT and SIGHUP for
// itself.
#ifndef LOCKSTEP_CHIEF_SERVER_CHIEF_MAIN_H_
#define LOCKSTEP_CHIEF_SERVER_CHIEF_MAIN_H_

#include <string>
#include <vector>

#include "common/graph/onnx/import.h"
#include "common/training/job_data.h"

namespace lockstep::chief {

struct ChiefOptions {
  std::string job_path;
  // `--set key=value`, applied over the job file in this order.
  std::vector<std::string> overrides;
  // The job's directory; empty: `checkpoint.dir` of the job.
  std::string directory;
  // Where workers reach the chief, HOST:PORT. With port 0 the port of the previous start of this directory is taken
  // again when it is free, else any free one; the address stands in DIR/chief/address either way.
  std::string listen = "127.0.0.1:0";
  // Not empty: the address is written here too, once this chief holds the directory. Workers that are given this file
  // never meet another chief of the directory.
  std::string address_file;
  // Workers that are about to be started by whoever starts this chief: the first generation waits for that many (for
  // at most the last call) before it forms. 0: not known; it waits until no more come for a moment.
  int expected_workers = 0;
  // Describes the job's data (worker/session/inspect_data.h has the one for files).
  DataInspector inspect_data;
  // Executes one node, to fold the constants of an imported model (worker/device/choice/evaluate_node.h).
  NodeEvaluator evaluate_node;
  // Waits until the chief that has the job is gone or silent, and takes the job over then (chief/standby).
  bool standby = false;
  // SIGTERM ends the whole job, as SIGINT does; else this chief hands its workers over to the next one.
  bool stops_on_sigterm = false;
  // Not empty: where etcd knows of the job (common/etcd/etcd_url.h). Standby chiefs learn there within seconds that the
  // chief is gone, and workers where it is.
  std::string etcd;
  // Not empty: every event and action of the core is recorded in this directory, one file per start.
  std::string record_directory;
  // A pipe to the supervisor, which says why this process failed behind everybody's last words; -1: none.
  int cause_fd = -1;
};

// Runs until the job is done, stopped or has failed. Returns the exit code.
int ChiefMain(const ChiefOptions& options);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_CHIEF_MAIN_H_
