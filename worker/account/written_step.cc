#include "worker/account/written_step.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"
#include "worker/account/peers.h"
#include "worker/account/written_device.h"
#include "worker/device/cuda/make_device.h"
#include "worker/step/replica_plans.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

// The first step finds the exponents of its sums and runs its passes twice, the second time recorded; from the next on
// all steps queue the same.
constexpr int kStepsBefore = 2;

// Samples of zeros in the form that the model takes.
class BlankData final : public DataSource {
 public:
  BlankData(const MetaGraph& metagraph, int64_t samples) : samples_(samples) {
    for (const InputRole role : {InputRole::kFeature, InputRole::kLabel}) {
      for (const SignatureInput& input : metagraph.signature) {
        if (input.role != role) continue;
        labels_ = role == InputRole::kLabel;
        fields_.push_back({input.field, input.dtype, Shape(input.shape.begin() + 1, input.shape.end())});
      }
    }
  }
  int64_t num_samples() const override { return samples_; }
  bool has_labels() const override { return labels_; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int, absl::Span<const int64_t>, absl::Span<std::byte> out) const override {
    if (!out.empty()) std::memset(out.data(), 0, out.size());
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  const int64_t samples_;
  bool labels_ = false;
  std::vector<TensorSpec> fields_;
  const std::string hash_ = "blank";
};

// Tokens of a sample: the model reads integers, a row of them each.
int64_t PositionsOf(const MetaGraph& metagraph) {
  for (const SignatureInput& input : metagraph.signature) {
    if (input.role != InputRole::kFeature || input.dtype != DType::kI64 || input.shape.size() != 2) continue;
    return input.shape[1];
  }
  return 0;
}

int64_t InputBytesOf(const Plan& plan) {
  int64_t bytes = 0;
  for (const TensorSpec& input : plan.inputs()) bytes += NumElements(input.shape) * DTypeSize(input.dtype);
  return bytes;
}

absl::Status RunSteps(StepRunner& runner, Communicator& communicator, Tape& tape) {
  for (int64_t step = 1; step <= kStepsBefore + 1; ++step) {
    if (step > kStepsBefore) tape.Start();
    LS_ASSIGN_OR_RETURN(const StepResult result, runner.RunStep(communicator, step, {}));
    if (!result.applied) return absl::InternalError(absl::StrCat("a step that is written down: ", result.message));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WrittenStep> WriteStep(const MetaGraph& metagraph, const JobSpec& given, int workers) {
  const auto shards = static_cast<int>(given.train().logical_shards());
  if (workers < 1 || workers > shards) {
    return absl::InvalidArgumentError(absl::StrCat(workers, " workers share ", shards,
                                                   " logical shards; raise train.logical_shards or ask for fewer"));
  }
  JobSpec job = given;
  job.mutable_data()->clear_eval();
  job.mutable_eval()->clear_sample();
  Tape tape;
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> cuda, device::MakeCudaDevice({.tf32 = job.numerics().tf32()}));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<WrittenDevice> device, WrittenDevice::Make(std::move(cuda), &tape));
  ReplicaPlans plans;
  plans.device = std::move(device);
  LS_RETURN_IF_ERROR(DraftPlansOn(metagraph, job, nullptr, NewChoices::kByRule, plans));

  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ReplicaState> state,
                      ReplicaState::Create(MakeStateLayout(metagraph), *plans.device));
  std::map<std::string, std::byte*> variables;
  for (const Variable& variable : metagraph.forward.variables) {
    variables[variable.name] = state->address(state->layout().Find(variable.name));
  }
  LS_RETURN_IF_ERROR(plans.Bind(variables, variables, /*shared_memory=*/nullptr));
  Plan& plan = *plans.training_plan;
  const int64_t batch = job.train().global_batch_size();
  const BlankData data(metagraph, 2 * batch);
  const std::unique_ptr<Mixing> mixing = MakeMixing(job, metagraph.pass_batch, data.fields());
  StepConfig config{.metagraph = metagraph,
                    .training = plans.training,
                    .evaluation = {},
                    .seed = job.train().seed(),
                    .global_batch = batch,
                    .logical_shards = shards,
                    .device = plans.device.get(),
                    .poison = false,
                    .mixing = mixing.get()};
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<StepRunner> runner,
                      StepRunner::Make(std::move(config), state.get(), {.training = &plan}, &data, nullptr));
  const GradientLayout& layout = plan.gradient_layout();
  const int compute = NumberOf(plan.stream());
  const std::unique_ptr<Communicator> communicator = MakePeers({.ranks = workers,
                                                                .logical_shards = shards,
                                                                .tensors = static_cast<int>(layout.tensors().size()),
                                                                .stream = compute,
                                                                .tape = &tape});
  LS_RETURN_IF_ERROR(RunSteps(*runner, *communicator, tape));

  WrittenStep step{.entries = tape.Stop(),
                   .compute_stream = compute,
                   .workers = workers,
                   .samples = batch,
                   .positions_per_sample = PositionsOf(metagraph),
                   .state_bytes = static_cast<int64_t>(state->host().bytes().size()),
                   .buckets = static_cast<int64_t>(layout.buckets().size())};
  step.works = tape.works();
  for (const FlatRange& tensor : layout.tensors()) step.parameters += tensor.size;
  const int64_t own = static_cast<int64_t>(AssignShards(workers, shards).shards[0].size());
  step.input_bytes = InputBytesOf(plan) * own * (batch / shards / metagraph.pass_batch);
  return step;
}

}  // namespace lockstep::worker
