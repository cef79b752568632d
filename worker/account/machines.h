// The data-sheet rates of the GPUs that an account can price a step for.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ACCOUNT_MACHINES_H_
#define LOCKSTEP_WORKER_ACCOUNT_MACHINES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/account/tape.h"

namespace lockstep::worker {

// Dense rates, without sparsity. GB are 10^9 bytes.
struct Machine {
  const char* name;   // "h100"
  const char* title;  // "NVIDIA H100 SXM, 80 GB"
  double bf16_tflops;
  double fp16_tflops;
  double tf32_tflops;
  double fp32_tflops;  // of the ordinary float units, without tensor cores
  double memory_gbs;
  double l2_mb;
  int multiprocessors;
  double link_gbs;     // to the other GPUs of its node, each way
  double network_gbs;  // to other nodes, each way, of one 400 Gbit/s adapter
  double bus_gbs;      // to the host, each way
  const char* source;  // the data sheet

  double operations_per_second(Units units) const;
};

// GPUs of a node that reach each other by `link_gbs`.
inline constexpr int kGpusOfNode = 8;

absl::Span<const Machine> Machines();
// InvalidArgument when there is none of that name; the message lists the known names.
absl::StatusOr<Machine> FindMachine(absl::string_view name);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_MACHINES_H_
