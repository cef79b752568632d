// Decides by computing whether this machine gives the bits of the one that made the kernel plan: seeded weights and
// data, one training pass and one evaluation pass, a digest of everything that every node wrote.
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

// Overwrites every variable of the graph with values that are a function of its name and kind alone. Whoever probes has
// to put the state back (or bring it in for the first time) and call RefreshVariables.
absl::Status SeedProbeVariables(Plan& plan, const Graph& graph, const std::map<std::string, std::byte*>& variables);

// Seeds the variables, then runs one pass with seeded inputs. The digests' names begin with `label` and a slash.
// `on_bucket` is that of the pass: a caller that goes on to an update takes the gradients there, and appends digests of
// its results with DigestOf.
absl::StatusOr<std::vector<NodeDigest>> RunProbe(const std::string& label, const ProbeSubject& subject,
                                                 const std::map<std::string, std::byte*>& variables,
                                                 Plan::BucketReady on_bucket);
absl::StatusOr<std::vector<NodeDigest>> RunProbe(const std::string& label, const ProbeSubject& subject,
                                                 const std::map<std::string, std::byte*>& variables);

// The digest of what a later stage computed from the probe.
NodeDigest DigestOf(std::string node, absl::Span<const std::byte> bytes);

// OK when both are equal; else FailedPrecondition that names the first node that differs.
absl::Status CompareProbes(absl::Span<const NodeDigest> recorded, absl::Span<const NodeDigest> here);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PROBE_H_
