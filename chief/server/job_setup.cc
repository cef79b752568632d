#include "chief/server/job_setup.h"

#include <optional>
#include <utility>

#include "common/checkpoint_format/shares.h"
#include "common/graph/initial_state.h"
#include "common/graph/state_tensors.h"
#include "common/job/extent.h"
#include "common/job/findings.h"
#include "common/job/log_settings.h"
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
  policy.exclude_host_after = static_cast<uint32_t>(job.failure().exclude_host_after());
  policy.replace_stragglers = job.failure().straggler() == job::Failure::STRAGGLER_REPLACE;
  policy.wait_for_min = job::ToDuration(job.cluster().wait_for_min());
  policy.heartbeat_limit = job::ToDuration(job.cluster().heartbeat_timeout());
  policy.training.heartbeat_interval = policy.heartbeat_limit / 10;
  policy.save_every = AmountTime(job.checkpoint().every()).value_or(absl::InfiniteDuration());
  policy.save_automatic = job.checkpoint().every().automatic();
  policy.max_duration = AmountTime(job.train().duration()).value_or(absl::InfiniteDuration());
  return policy;
}

}  // namespace

absl::StatusOr<JobSetup> SetUpJob(const ChiefOptions& options, int& exit_code) {
  Findings findings;
  const JobReading reading = ReadJob(options.job_path, options.overrides);
  ApplyLogSettings(reading.spec);  // before the first line
  std::optional<PreparedJob> prepared = PrepareJob(reading, options.inspect_data, options.evaluate_node, findings);
  bool first = true;  // of the errors: the caller says it, last
  for (const Finding& finding : findings.all()) {
    if (finding.gravity == Gravity::kWarning) LS_LOG(warn, finding.what, ": ", finding.text);
    if (finding.gravity != Gravity::kError) continue;
    if (!first) LS_LOG(error, finding.text);
    first = false;
  }
  if (!prepared.has_value()) {
    exit_code = findings.exit_code();
    return findings.first_error();
  }
  for (const AccountLine& line : prepared->account) LS_LOG(info, line.what, ": ", line.text);
  JobSetup setup{*std::move(prepared), "", {}};
  setup.directory = options.directory.empty() ? setup.job.checkpoint().dir() : options.directory;
  setup.policy = PolicyOf(setup.job, setup.training, options);
  setup.listen = options.listen;
  setup.policy.frozen_share = HasFrozenShare(ToCheckpointTensors(setup.layout));
  setup.policy.metagraph = setup.fingerprint;
  return setup;
}

absl::StatusOr<InitialState> InitialStateOf(const JobSetup& setup, int& exit_code) {
  exit_code = kExitBadJob;
  const auto of_model = [&](const std::string&, const std::string& tensor) -> absl::StatusOr<Tensor> {
    const auto found = setup.initial.find(tensor);
    if (found == setup.initial.end()) return absl::NotFoundError("the model does not hold it");
    return found->second.Clone();
  };
  InitialState initial;
  LS_ASSIGN_OR_RETURN(initial.tensors, MakeInitialState(setup.metagraph, setup.job.train().seed(), of_model));
  if (!setup.job.model().has_from()) return initial;
  absl::StatusOr<WarmStartReport> trained = BeginFrom(setup.job.model().from(), setup.layout, initial.tensors);
  exit_code = WarmStartExitCode(trained.status());
  LS_RETURN_IF_ERROR(trained.status());
  initial.trained = *std::move(trained);
  return initial;
}

}  // namespace lockstep::chief
