// The probe: checks that this machine computes the same bits as the one that made the kernel plan. It runs one training
// pass and one evaluation pass with seeded weights and data, and digests the outputs of every node.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_PLAN_PROBE_H_
#define LOCKSTEP_WORKER_PLAN_PROBE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// A plan and the graph it was made from.
struct ProbeSubject {
  Plan* plan = nullptr;
  const Graph* graph = nullptr;
};

// Overwrites every variable of the graph with values that depend on its name and kind alone. After a probe the caller
// must load the state and call RefreshVariables.
absl::Status SeedProbeVariables(Plan& plan, const Graph& graph, const std::map<std::string, std::byte*>& variables);

// Seeds the variables and runs one pass with seeded inputs. The digests' names begin with `label` and a slash.
// `on_bucket` is that of the pass: a caller that also probes an update takes the gradients there, and appends digests
// of the results with DigestOf.
absl::StatusOr<std::vector<NodeDigest>> RunProbe(const std::string& label, const ProbeSubject& subject,
                                                 const std::map<std::string, std::byte*>& variables,
                                                 Plan::BucketReady on_bucket);
absl::StatusOr<std::vector<NodeDigest>> RunProbe(const std::string& label, const ProbeSubject& subject,
                                                 const std::map<std::string, std::byte*>& variables);

// The digest of a result that a later stage computed in the probe.
NodeDigest DigestOf(std::string node, absl::Span<const std::byte> bytes);

// OK when both are equal; else FailedPrecondition, which names the first node that differs.
absl::Status CompareProbes(absl::Span<const NodeDigest> recorded, absl::Span<const NodeDigest> here);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PROBE_H_
