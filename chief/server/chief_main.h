// A whole chief process as a function: `lockstep chief` and the binary lockstep-chief both call it.
//
// Threading: call once, from the main thread, before other threads exist: it handles SIGTERM, SIGINT and SIGHUP of the
// process.
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
  // Where workers reach the chief, HOST:PORT. With port 0 the chief takes the port of the directory's previous chief if
  // it is free, else any free one. The address is stored in DIR/chief/address in any case.
  std::string listen = "127.0.0.1:0";
  // Not empty: the address is also written to this file, once this chief holds the directory. Workers that are given
  // this file never meet another chief of the directory.
  std::string address_file;
  // The number of workers that are about to be started together with this chief: the first generation waits for that
  // many before it forms (at most for the last call). 0: not known; it waits until no more come for a moment.
  int expected_workers = 0;
  // Describes the job's data (worker/session/inspect_data.h has the one for files).
  DataInspector inspect_data;
  // Executes one node, to fold the constants of an imported model (worker/device/choice/evaluate_node.h).
  NodeEvaluator evaluate_node;
  // Waits until the job's present chief is gone or silent, then takes the job over (chief/standby).
  bool standby = false;
  // SIGTERM ends the whole job, as SIGINT does; otherwise SIGTERM hands the workers over to the next chief.
  bool stops_on_sigterm = false;
  // Not empty: the URL of the job in etcd (common/etcd/etcd_url.h). There standby chiefs learn within seconds that the
  // chief is gone, and workers learn its address.
  std::string etcd;
  // Not empty: every event and action of the core is recorded in this directory, one file per start.
  std::string record_directory;
  // A pipe on which this process tells its supervisor why it failed, which the supervisor prints as the last line; -1:
  // none.
  int cause_fd = -1;
};

// Runs until the job is done, stopped or has failed. Returns the exit code.
int ChiefMain(const ChiefOptions& options);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_CHIEF_MAIN_H_
