#include "chief/server/job_setup.h"

#include "common/digest/sha256.h"
#include "common/graph/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/serialize.h"
#include "common/job/extent.h"
#include "common/job/graph_request.h"
#include "common/job/load_model.h"
#include "common/job/units.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

JobPolicy PolicyOf(const JobSpec& job, const TrainingPolicy& training, const ChiefOptions& options) {
  JobPolicy policy;
  policy.job = job.name();
  policy.training = training;
  policy.min_workers = static_cast<uint32_t>(job.cluster().workers().min());
  policy.max_workers = static_cast<uint32_t>(job.cluster().workers().max());
  policy.expected_workers = static_cast<uint32_t>(options.expected_workers);
  policy.lineage_per_generation = training.digest_in_acks;
  policy.max_failures = static_cast<uint32_t>(job.failure().max_failures());
  policy.wait_for_min = job::ToDuration(job.cluster().wait_for_min());
  policy.heartbeat_limit = job::ToDuration(job.cluster().heartbeat_timeout());
  policy.save_every = AmountTime(job.checkpoint().every()).value_or(absl::InfiniteDuration());
  policy.max_duration = AmountTime(job.train().duration()).value_or(absl::InfiniteDuration());
  return policy;
}

}  // namespace

absl::StatusOr<JobSetup> SetUpJob(const ChiefOptions& options, int& exit_code) {
  exit_code = kExitBadJob;
  JobSetup setup;
  LS_ASSIGN_OR_RETURN(setup.job, LoadJob(options.job_path, options.overrides));
  setup.directory = options.directory.empty() ? setup.job.checkpoint().dir() : options.directory;
  LS_ASSIGN_OR_RETURN(std::optional<ImportedModel> imported, LoadModel(setup.job, options.evaluate_node));
  const Graph* const graph = imported.has_value() ? &imported->graph : nullptr;
  exit_code = kExitBadData;
  LS_ASSIGN_OR_RETURN(setup.facts, options.inspect_data(setup.job, graph));
  exit_code = kExitBadJob;
  // From here on the job names its data by content: a worker with other files is refused, and so is a resume.
  if (!setup.facts.train_sha256.empty()) {
    setup.job.mutable_data()->mutable_train()->set_sha256(setup.facts.train_sha256);
  }
  if (!setup.facts.eval_sha256.empty()) setup.job.mutable_data()->mutable_eval()->set_sha256(setup.facts.eval_sha256);
  LS_ASSIGN_OR_RETURN(const TrainingPolicy training, MakeTrainingPolicy(setup.job, setup.facts));
  LS_ASSIGN_OR_RETURN(MetaGraphRequest request, MakeMetaGraphRequest(setup.job, graph, setup.facts.inputs,
                                                                     setup.facts.labels, setup.facts.train_samples));
  if (imported.has_value()) {
    request.aliases = imported->aliases;
    for (const std::string& warning : imported->warnings) LS_LOG(warn, "model.onnx: ", warning);
    setup.initial = std::move(imported->initial);
  }
  LS_ASSIGN_OR_RETURN(setup.metagraph, BuildMetaGraph(request));
  LS_ASSIGN_OR_RETURN(setup.metagraph_bytes, SerializeMetaGraph(setup.metagraph));
  setup.fingerprint = Sha256Hex(setup.metagraph_bytes);
  setup.policy = PolicyOf(setup.job, training, options);
  setup.policy.metagraph = setup.fingerprint;
  return setup;
}

absl::StatusOr<std::vector<Tensor>> InitialStateOf(const JobSetup& setup) {
  const auto of_model = [&](const std::string&, const std::string& tensor) -> absl::StatusOr<Tensor> {
    const auto found = setup.initial.find(tensor);
    if (found == setup.initial.end()) return absl::NotFoundError("the model does not hold it");
    return found->second.Clone();
  };
  return MakeInitialState(setup.metagraph, setup.job.train().seed(), of_model);
}

}  // namespace lockstep::chief
