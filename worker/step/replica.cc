#include "worker/step/replica.h"

#include <malloc.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/graph/metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "common/graph/serialize.h"
#include "common/graph/state_layout.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/training/training_policy.h"
#include "worker/arithmetic/optimizer.h"
#include "worker/plan/kernel_plan.h"
#include "worker/plan/probe.h"
#include "worker/step/forecast.h"
#include "worker/step/process_memory.h"

namespace lockstep::worker {
// Makes the parts of a replica one after another; the first that fails names the kind of problem.
class ReplicaBuilder {
 public:
  ReplicaBuilder(const JobSpec& job, const std::string& kernel_plan, Pulse* pulse, Profiler* profiler,
                 const device::WorkerDevice& where)
      : job_(job), kernel_plan_(kernel_plan), pulse_(pulse), profiler_(profiler), where_(where) {}

  void ShareMemory(std::shared_ptr<SharedMemory> memory) { config_.shared_memory = std::move(memory); }

  absl::Status Build(const std::string& metagraph_bytes) {
    LS_ASSIGN_OR_RETURN(config_.metagraph, ParseMetaGraph(metagraph_bytes));
    problem_ = PrepareProblem::kCannotRun;
    std::optional<KernelPlan> recorded;
    if (!kernel_plan_.empty()) {
      LS_ASSIGN_OR_RETURN(recorded, ParseKernelPlan(kernel_plan_));
    }
    const KernelPlan* const replayed = recorded.has_value() ? &*recorded : nullptr;
    LS_RETURN_IF_ERROR(FitsOrNot(Draft(replayed)));
    const int64_t process = ProcessBytes();
    problem_ = PrepareProblem::kData;
    LS_RETURN_IF_ERROR(OpenData());
    LS_RETURN_IF_ERROR(FitsOrNot(DraftRestOfEvaluation(replayed)));
    LS_RETURN_IF_ERROR(FitsOrNot(CheckLimit(process)));
    LS_RETURN_IF_ERROR(FitsOrNot(Bind()));
    problem_ = PrepareProblem::kProbe;
    LS_RETURN_IF_ERROR(MakeOrReplay(replayed));
    // The probe's copies of weights and results go back to the system: kept in the heap they would be a peak of their
    // own.
    malloc_trim(0);
    return FitsOrNot(MakeRunner());
  }

  PrepareProblem problem() const { return problem_; }
  std::unique_ptr<Replica> Take() { return std::move(replica_); }

 private:
  absl::Status OpenData() {
    FeedOptions feed = FeedOptionsOf(job_, config_.metagraph);
    feed.pulse = pulse_;
    LS_ASSIGN_OR_RETURN(replica_->train_, OpenDataSource(job_.data().train(), feed));
    if (job_.data().has_augment()) {
      replica_->augmentation_ = std::make_unique<Augmentation>(job_.data().augment(), feed.normalisation,
                                                               job_.train().seed(), replica_->train_->fields());
      config_.augmentation = replica_->augmentation_.get();
    }
    replica_->mixing_ = MakeMixing(job_, config_.metagraph.pass_batch, replica_->train_->fields());
    config_.mixing = replica_->mixing_.get();
    if (job_.data().has_eval()) {
      LS_ASSIGN_OR_RETURN(replica_->eval_, OpenDataSource(job_.data().eval(), feed));
    }
    replica_->data_digest_ = replica_->train_->content_hash();
    replica_->settings_ = MadeWithSettings(job_);
    replica_->digest_threads_ = static_cast<int>(job_.resources().cpu_threads());
    return absl::OkStatus();
  }

  // Notes what kind of problem it is that plans cannot be made.
  absl::Status FitsOrNot(absl::Status status) {
    problem_ = absl::IsResourceExhausted(status) ? PrepareProblem::kDoesNotFit : PrepareProblem::kCannotRun;
    return status;
  }

  absl::Status Draft(const KernelPlan* replayed) {
    LS_ASSIGN_OR_RETURN(replica_->plans_, DraftReplicaPlans(config_.metagraph, job_, replayed, pulse_, profiler_,
                                                            where_, NewChoices::kByTrial));
    config_.training = replica_->plans_.training;
    config_.evaluation = replica_->plans_.evaluation.graph;
    config_.eval_batch = replica_->plans_.evaluation.batch;
    config_.pulse = pulse_;
    config_.profiler = profiler_;
    config_.seed = job_.train().seed();
    config_.global_batch = job_.train().global_batch_size();
    config_.logical_shards = static_cast<int>(job_.train().logical_shards());
    return absl::OkStatus();
  }

  absl::Status DraftRestOfEvaluation(const KernelPlan* replayed) {
    if (replica_->eval_ == nullptr) return absl::OkStatus();
    return DraftRest(config_.metagraph, replayed, replica_->eval_->num_samples(), replica_->plans_);
  }

  // `process` is what the process took before its data.
  absl::Status CheckLimit(int64_t process) {
    HostUse beside{.process = process, .data = replica_->train_->held_bytes()};
    if (replica_->eval_ != nullptr) beside.data += replica_->eval_->held_bytes();
    LS_ASSIGN_OR_RETURN(ReplicaForecast forecast, ForecastOf(config_.metagraph, job_, replica_->plans_, beside));
    KeepWhatFits(job_, forecast);
    replica_->kept_copies_ = forecast.kept_bytes > 0 ? kKeptCopies : 0;
    LS_RETURN_IF_ERROR(CheckMemoryLimit(forecast, config_.metagraph, job_, pulse_, where_));
    replica_->releasable_bytes_ = forecast.device_total() - forecast.state_bytes;
    return absl::OkStatus();
  }

  absl::Status MakeRunner() {
    config_.device = replica_->plans_.device.get();
    replica_->pulse_ = pulse_;
    const job::GpuMemory& memory = job_.resources().gpu_memory();
    replica_->grows_ = !memory.has_fraction() && !memory.has_bytes();
    return replica_->MakeRunner(std::move(config_));
  }

  absl::Status Bind() {
    LS_ASSIGN_OR_RETURN(replica_->state_,
                        ReplicaState::Create(MakeStateLayout(config_.metagraph), *replica_->plans_.device));
    AdvancePulse(pulse_);
    for (const Variable& variable : config_.metagraph.forward.variables) {
      replica_->variables_[variable.name] = replica_->state_->address(replica_->state_->layout().Find(variable.name));
    }
    replica_->evaluated_ = replica_->variables_;
    if (job_.eval().weights() == job::Eval::WEIGHTS_EMA) {
      // Statistics and what is frozen have second names there, at the same place.
      for (auto& [name, address] : replica_->evaluated_) {
        address = replica_->state_->address(replica_->state_->layout().Find(EmaName(name)));
      }
    }
    return replica_->plans_.Bind(replica_->variables_, replica_->evaluated_, config_.shared_memory.get());
  }

  // Evaluations may be added to a job, changed and taken from it: the part of each plan for them is compared where both
  // have one.
  static absl::Status Compare(const std::vector<NodeDigest>& recorded, const std::vector<NodeDigest>& here) {
    const auto comparable = [](std::vector<NodeDigest> digests, const std::vector<NodeDigest>& others) {
      std::set<std::string> labels;
      for (const NodeDigest& other : others) labels.insert(LabelOf(other));
      std::erase_if(digests, [&](const NodeDigest& digest) {
        const std::string label = LabelOf(digest);
        return absl::StartsWith(label, kEvaluationLabel) && labels.count(label) == 0;
      });
      return digests;
    };
    return CompareProbes(comparable(recorded, here), comparable(here, recorded));
  }

  // Of the plan, as RunProbe was given it.
  static std::string LabelOf(const NodeDigest& digest) { return digest.node.substr(0, digest.node.find('/')); }

  absl::Status MakeOrReplay(const KernelPlan* replayed) {
    LS_ASSIGN_OR_RETURN(std::vector<NodeDigest> probe, Probe());
    if (replayed != nullptr) {
      LS_RETURN_IF_ERROR(Compare(replayed->probe, probe));
      replica_->kernel_plan_ = kernel_plan_;
    } else {
      const ReplicaPlans& plans = replica_->plans_;
      KernelPlan made = DescribeKernels(plans.device->info(), plans.options, plans.all());
      made.probe = std::move(probe);
      replica_->kernel_plan_ = SerializeKernelPlan(made);
    }
    replica_->plan_hash_ = KernelPlanHash(replica_->kernel_plan_);
    return absl::OkStatus();
  }

  // One logical shard with seeded weights and data: training, update, evaluation (rule 31). Leaves the state zeroed.
  absl::StatusOr<std::vector<NodeDigest>> Probe() {
    const absl::Time begin = SteadyNow();
    Plan& plan = *replica_->plans_.training_plan;
    const GradientLayout& gradients = plan.gradient_layout();
    device::Device& device = *replica_->plans_.device;
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<device::Buffer> flat,
                        device.Allocate(static_cast<size_t>(gradients.total_elements()) * sizeof(float)));
    auto* const floats = reinterpret_cast<float*>(flat->address());
    const auto take = [&](int bucket) {
      const FlatRange range = gradients.buckets()[bucket].range;
      return plan.stream().CopyOnDevice(reinterpret_cast<std::byte*>(floats + range.offset),
                                        plan.bucket_address(bucket), range.size * sizeof(float));
    };
    LS_ASSIGN_OR_RETURN(std::vector<NodeDigest> digests,
                        RunProbe("training", {&plan, &config_.training.graph}, replica_->variables_, take));
    replica_->longest_node_ = SteadyNow() - begin;
    LS_RETURN_IF_ERROR(ProbeUpdate(floats));
    ReplicaState& state = *replica_->state_;
    LS_RETURN_IF_ERROR(state.Fetch());
    for (const std::string& name : plan.gradient_parameters()) {
      digests.push_back(DigestOf(absl::StrCat("update/", name), state.host().tensor(state.layout().Find(name))));
      AdvancePulse(pulse_);
    }
    LS_RETURN_IF_ERROR(ProbeEvaluation(replica_->plans_.evaluation, kEvaluationLabel, digests));
    const EvaluationPlan& rest = replica_->plans_.rest;
    LS_RETURN_IF_ERROR(ProbeEvaluation(rest, RestLabel(rest.batch), digests));
    std::fill(state.host().bytes().begin(), state.host().bytes().end(), std::byte{0});
    LS_RETURN_IF_ERROR(state.Store());
    return digests;
  }

  absl::Status ProbeEvaluation(const EvaluationPlan& made, const std::string& label,
                               std::vector<NodeDigest>& digests) const {
    if (made.plan == nullptr) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(const std::vector<NodeDigest> evaluated,
                        RunProbe(label, {made.plan.get(), &made.graph.graph}, replica_->evaluated_));
    digests.insert(digests.end(), evaluated.begin(), evaluated.end());
    return absl::OkStatus();
  }

  // The update of a first step, with the probe's gradients, which lie in device memory as the layout says.
  absl::Status ProbeUpdate(const float* gradients) {
    Plan& plan = *replica_->plans_.training_plan;
    ReplicaState& state = *replica_->state_;
    const UpdateRule& rule = config_.metagraph.update;
    std::vector<GradientSum> sums;
    for (const FlatRange& range : plan.gradient_layout().tensors()) {
      sums.push_back({range.size, gradients + range.offset});
    }
    LS_ASSIGN_OR_RETURN(
        const ParameterUpdates updates,
        ParameterUpdates::Make(rule, replica_->plans_.device->step_math(), state,
                               IndexParameters(rule, state.layout(), plan.gradient_parameters()), sums));
    LS_RETURN_IF_ERROR(state.BeginWrite(plan.stream()));
    LS_RETURN_IF_ERROR(updates.Queue(plan.stream(), UpdatePlace(), static_cast<double>(config_.metagraph.pass_batch),
                                     /*norm=*/1.0, /*clip=*/nullptr));
    LS_RETURN_IF_ERROR(state.EndWrite(plan.stream()));
    return plan.Synchronize();
  }

  const JobSpec& job_;
  const std::string& kernel_plan_;
  Pulse* const pulse_;
  Profiler* const profiler_;
  const device::WorkerDevice where_;
  PrepareProblem problem_ = PrepareProblem::kOther;
  std::unique_ptr<Replica> replica_{new Replica};
  StepConfig config_;
};

Replica::~Replica() {
  // Plans wait for their work, which uses the state; the state goes before its device.
  runner_.reset();
  plans_.text_plan.reset();
  plans_.rest.plan.reset();
  plans_.evaluation.plan.reset();
  plans_.training_plan.reset();
}

absl::Status Replica::MakeRunner(StepConfig config) {
  const StepPlans plans{plans_.training_plan.get(), plans_.evaluation.plan.get(), plans_.rest.plan.get()};
  LS_ASSIGN_OR_RETURN(runner_, StepRunner::Make(std::move(config), state_.get(), plans, train_.get(), eval_.get()));
  MutexLock lock(&mutex_);
  cancellable_ = runner_.get();
  cancellable_->Cancel(cancelled_);
  return absl::OkStatus();
}

void Replica::Cancel(bool cancel) {
  MutexLock lock(&mutex_);
  cancelled_ = cancel;
  if (cancellable_ != nullptr) cancellable_->Cancel(cancel);
}

StepTimes Replica::times() const {
  StepTimes times = times_before_;
  if (runner_ != nullptr) times += runner_->times();
  return times;
}

bool Replica::ReleaseMemory() {
  if (released() || !grows_ || plans_.device->host_visible()) return false;
  {
    MutexLock lock(&mutex_);
    cancellable_ = nullptr;
  }
  times_before_ = times();
  config_ = std::make_unique<StepConfig>(runner_->config());
  runner_.reset();
  plans_.Release();
  return true;
}

absl::Status Replica::TakeMemory() {
  LS_CHECK(released(), "memory that was given back is taken again");
  absl::Status taken = plans_.Bind(variables_, evaluated_, config_->shared_memory.get());
  AdvancePulse(pulse_);
  if (taken.ok()) taken = MakeRunner(*config_);
  if (taken.ok()) {
    config_.reset();
    return taken;
  }
  plans_.Release();
  if (!absl::IsResourceExhausted(taken)) return taken;
  return absl::ResourceExhaustedError(absl::StrCat(
      "this worker had nothing to compute and gave ", releasable_bytes_, " bytes of its GPU's memory back ",
      "(`resources.gpu_memory: grow`), and now that it needs them they are gone: ", taken.message(),
      ". Free memory of the GPU, or set a share of it aside for each worker by bytes or a fraction"));
}

std::string Replica::device_text() const {
  const device::DeviceInfo& info = plans_.device->info();
  if (plans_.chosen.kind != device::DeviceKind::kCuda) return absl::StrCat(info.kind, " ", info.instruction_set);
  return absl::StrCat(info.kind, ":", plans_.chosen.gpu.ordinal, " ", info.model);
}

std::unique_ptr<Replica> Replica::Make(const std::string& metagraph_bytes, const JobSpec& job,
                                       const std::string& kernel_plan, Pulse* pulse, ReplicaProblem& problem,
                                       Profiler* profiler, const device::WorkerDevice& where,
                                       std::shared_ptr<SharedMemory> shared_memory) {
  ReplicaBuilder builder(job, kernel_plan, pulse, profiler, where);
  builder.ShareMemory(std::move(shared_memory));
  const absl::Status status = builder.Build(metagraph_bytes);
  if (status.ok()) return builder.Take();
  problem = {builder.problem(), status};
  return nullptr;
}

}  // namespace lockstep::worker
