#include "worker/step/forecast.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/state_layout.h"
#include "common/job/units.h"
#include "common/status/status_macros.h"
#include "worker/data/batch_reader.h"
#include "worker/plan/input_staging.h"
#include "worker/step/gradient_exchange.h"
#include "worker/step/host_state.h"
#include "worker/step/process_memory.h"

namespace lockstep::worker {
namespace {

constexpr size_t kNamedParts = 3;

// Bytes of one sample as batches hold it.
int64_t SampleBytes(const MetaGraph& metagraph) {
  int64_t bytes = 0;
  for (const SignatureInput& input : metagraph.signature) {
    bytes += NumElements(Shape(input.shape.begin() + 1, input.shape.end())) * DTypeSize(input.dtype);
  }
  return bytes;
}

// Of what mixing adds to it: the partner's label, and the share.
int64_t MixedBytes(const MetaGraph& metagraph) {
  if (!metagraph.loss.mixes_labels) return 0;
  for (const SignatureInput& input : metagraph.signature) {
    if (input.name != metagraph.loss.label) continue;
    return NumElements(Shape(input.shape.begin() + 1, input.shape.end())) * DTypeSize(input.dtype) +
           int64_t{sizeof(float)};
  }
  return 0;
}

void Add(const PlanMemory& more, PlanMemory& sum) {
  sum.arena += more.arena;
  sum.gradients += more.gradients;
  sum.persistent += more.persistent;
}

// The plans of the job, that of the rest of its evaluation set included.
absl::StatusOr<ReplicaPlans> DraftAll(const MetaGraph& metagraph, const JobSpec& job, int64_t eval_samples,
                                      const device::WorkerDevice& where, Pulse* pulse) {
  LS_ASSIGN_OR_RETURN(ReplicaPlans plans, DraftReplicaPlans(metagraph, job, nullptr, pulse, nullptr, where));
  LS_RETURN_IF_ERROR(DraftRest(metagraph, nullptr, eval_samples, plans));
  return plans;
}

// One of the memories that a worker takes from, and how much it may take.
struct Budget {
  int64_t (ReplicaForecast::*need)() const;
  int64_t limit;
  std::string allowed;  // "resources.cpu_memory allows 4096"
  std::string instead;  // "Or raise the limit."
  // Of the need: what was measured. It differs from process to process, so messages name it without a number, and a
  // worker refuses a job in the words of a check.
  int64_t measured = 0;
};

// Drafts a job anew, with other settings, for one of a worker's memories.
class Drafts {
 public:
  Drafts(const Budget& budget, const ReplicaForecast& forecast, const device::WorkerDevice& where, Pulse* pulse)
      : budget_(budget), beside_(forecast.beside), eval_samples_(forecast.eval_samples), where_(where), pulse_(pulse) {}

  // What the job needs; nullopt when the model cannot be computed so.
  std::optional<int64_t> Need(const MetaGraph& metagraph, const JobSpec& job) const {
    const absl::StatusOr<ReplicaPlans> plans = DraftAll(metagraph, job, eval_samples_, where_, pulse_);
    if (!plans.ok()) return std::nullopt;
    const absl::StatusOr<ReplicaForecast> forecast = ForecastOf(metagraph, job, *plans, beside_);
    if (!forecast.ok()) return std::nullopt;
    return ((*forecast).*budget_.need)();
  }

  std::optional<int64_t> NeedWith(int64_t micro_batch, MetaGraph metagraph, JobSpec job) const {
    metagraph.pass_batch = micro_batch;
    job.mutable_train()->set_micro_batch(micro_batch);
    return Need(metagraph, job);
  }

  // A need as messages give it.
  int64_t Stated(int64_t need) const { return need - budget_.measured; }

  bool Fits(const std::optional<int64_t>& need) const { return need.has_value() && *need <= budget_.limit; }

 private:
  const Budget& budget_;
  const HostUse beside_;
  const int64_t eval_samples_;
  const device::WorkerDevice& where_;
  Pulse* const pulse_;
};

// The setting that computes blocks again, where it alone is enough.
std::string RecomputeAdvice(const Drafts& drafts, const MetaGraph& metagraph, JobSpec job) {
  if (job.train().recompute() == job::Train::RECOMPUTE_BLOCKS) return "";
  job.mutable_train()->set_recompute(job::Train::RECOMPUTE_BLOCKS);
  const std::optional<int64_t> need = drafts.Need(metagraph, job);
  return drafts.Fits(need) ? absl::StrCat("`train.recompute: blocks` fits (", drafts.Stated(*need), " bytes). ") : "";
}

// What would make a job fit that does not. Less in a pass needs less: the largest that fits is found by halving.
std::string Advice(const Drafts& drafts, const MetaGraph& metagraph, const JobSpec& job) {
  const int64_t shard = job.train().global_batch_size() / job.train().logical_shards();
  std::vector<int64_t> smaller;
  for (int64_t size = 1; size < metagraph.pass_batch; ++size) {
    if (shard % size == 0) smaller.push_back(size);
  }
  std::string fits;
  std::string least;
  size_t begin = 0;
  for (size_t end = smaller.size(); begin < end;) {
    const size_t middle = begin + (end - begin) / 2;
    const std::optional<int64_t> need = drafts.NeedWith(smaller[middle], metagraph, job);
    if (drafts.Fits(need)) {
      fits = absl::StrCat("The largest micro-batch that fits: `train.micro_batch: ", smaller[middle], "` (",
                          drafts.Stated(*need), " bytes). ");
      begin = middle + 1;
    } else {
      if (middle == 0 && need.has_value()) {
        least = absl::StrCat("Even `train.micro_batch: ", smaller[middle], "` needs ", drafts.Stated(*need), ". ");
      }
      end = middle;
    }
  }
  return absl::StrCat(fits.empty() ? least : fits, RecomputeAdvice(drafts, metagraph, job));
}

std::string LargestText(const PlanPeak& peak) {
  std::string largest;
  for (size_t i = 0; i < std::min(peak.parts.size(), kNamedParts); ++i) {
    absl::StrAppend(&largest, i == 0 ? "" : ", ", "'", peak.parts[i].name, "' (", peak.parts[i].bytes, ")");
  }
  return largest;
}

// "state 4096, snapshots of it 8192, ...": what the need consists of.
std::string PartsText(const ReplicaForecast& forecast, bool device, bool host) {
  std::string text;
  const auto part = [&](bool counts, absl::string_view name, int64_t bytes) {
    if (counts) absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", bytes);
  };
  part(host && forecast.beside.data > 0, "data", forecast.beside.data);
  part(device, "state", forecast.state_bytes);
  part(host, "snapshots of it", forecast.snapshot_bytes);
  part(host && forecast.kept_bytes > 0, "copies of audited states", forecast.kept_bytes);
  part(device, "sums of gradients", forecast.exchange_bytes);
  part(device && forecast.input_bytes > 0, "inputs ahead", forecast.input_bytes);
  part(host, "batches", forecast.batch_bytes);
  part(host && forecast.host_copy_bytes > 0, "copies of state and sums", forecast.host_copy_bytes);
  part(device, "training plan", forecast.training.total());
  part(device, "evaluation plan", forecast.evaluation.total() + forecast.text.total());
  return text;
}

Budget DeviceBudget(const ReplicaForecast& forecast, const JobSpec& job) {
  Budget budget{.need = &ReplicaForecast::device_total, .limit = forecast.device_memory, .allowed = "", .instead = ""};
  const job::GpuMemory& memory = job.resources().gpu_memory();
  if (memory.has_fraction() || memory.has_bytes()) {
    budget.allowed = absl::StrCat("resources.gpu_memory: ", job::GpuMemoryText(memory), " leaves it ", budget.limit,
                                  " beside what CUDA takes itself");
    budget.instead = "Or raise the limit, or share the GPU with fewer.";
  } else {
    budget.allowed = absl::StrCat("the GPU has ", budget.limit, " free");
    budget.instead = "Or give it a GPU with more, or fewer workers.";
  }
  return budget;
}

}  // namespace

absl::StatusOr<ReplicaForecast> ForecastOf(const MetaGraph& metagraph, const JobSpec& job, const ReplicaPlans& plans,
                                           const HostUse& beside) {
  ReplicaForecast forecast{.beside = beside};
  LS_ASSIGN_OR_RETURN(forecast.state_bytes, HostState::BytesOf(MakeStateLayout(metagraph)));
  forecast.snapshot_bytes = kSnapshotBuffers * forecast.state_bytes;
  const int64_t shards = job.train().logical_shards();
  forecast.exchange_bytes = GradientExchange::BytesOf(plans.training_plan->gradient_layout(), static_cast<int>(shards),
                                                      metagraph.update.reduction);
  const int64_t read_ahead = BatchReader::BatchesAlive(BatchReader::kReadAhead);
  forecast.batch_bytes =
      read_ahead * (job.train().global_batch_size() / shards) * (SampleBytes(metagraph) + MixedBytes(metagraph));
  forecast.training = plans.training_plan->memory();
  for (const EvaluationPlan* evaluates : {&plans.evaluation, &plans.rest}) {
    if (evaluates->plan == nullptr) continue;
    forecast.batch_bytes += evaluates->batch * (SampleBytes(metagraph) + int64_t{sizeof(float)});
    Add(evaluates->plan->memory(), forecast.evaluation);
  }
  forecast.eval_samples = plans.eval_samples;
  if (plans.text_plan != nullptr) forecast.text = plans.text_plan->memory();
  forecast.peak = plans.training_plan->Peak();
  forecast.steps = plans.training_plan->Describe();
  forecast.device_memory = plans.device_memory;
  // Sums come to the host where ranks are not joined on their devices, which shows only when they meet.
  if (!plans.device->host_visible()) {
    forecast.host_copy_bytes = forecast.state_bytes + forecast.exchange_bytes;
    forecast.input_bytes = InputStaging::BytesOf(*plans.training_plan);
  }
  return forecast;
}

void KeepWhatFits(const JobSpec& job, ReplicaForecast& forecast) {
  forecast.kept_bytes = 0;
  if (job.cluster().workers().max() < 2) return;  // nothing is compared
  const int64_t bytes = kKeptCopies * forecast.state_bytes;
  const bool fits =
      !job.resources().has_cpu_memory() || forecast.host_total() + bytes <= job.resources().cpu_memory().bytes();
  if (fits) forecast.kept_bytes = bytes;
}

absl::Status CheckMemoryLimit(const ReplicaForecast& forecast, const MetaGraph& metagraph, const JobSpec& job,
                              Pulse* pulse, const device::WorkerDevice& where) {
  const bool has_memory = forecast.device_memory > 0;
  if (has_memory && forecast.device_total() > forecast.device_memory) {
    const Budget budget = DeviceBudget(forecast, job);
    return absl::ResourceExhaustedError(absl::StrCat(
        "a worker needs ", forecast.device_total(), " bytes of its GPU (", PartsText(forecast, true, false), "), ",
        budget.allowed, ". Largest of the training plan's values: ", LargestText(forecast.peak), ". ",
        Advice(Drafts(budget, forecast, where, pulse), metagraph, job), budget.instead));
  }
  const int64_t limit = job.resources().cpu_memory().bytes();
  if (!job.resources().has_cpu_memory() || forecast.host_total() <= limit) return absl::OkStatus();
  const Budget budget{.need = &ReplicaForecast::host_total,
                      .limit = limit,
                      .allowed = absl::StrCat("resources.cpu_memory allows ", limit),
                      .instead = "Or raise the limit.",
                      .measured = forecast.beside.process};
  const std::string needs = absl::StrCat("a worker needs ", forecast.host_total() - budget.measured, " bytes",
                                         budget.measured > 0 ? " and those of its own process (" : " (",
                                         PartsText(forecast, !has_memory, true), "), ", budget.allowed, ". ");
  // What lies on a GPU does not help the host.
  if (has_memory) return absl::ResourceExhaustedError(absl::StrCat(needs, budget.instead));
  return absl::ResourceExhaustedError(
      absl::StrCat(needs, "Largest of the training plan's values: ", LargestText(forecast.peak), ". ",
                   Advice(Drafts(budget, forecast, where, pulse), metagraph, job), budget.instead));
}

absl::StatusOr<ReplicaForecast> ForecastReplica(const MetaGraph& metagraph, const JobSpec& job,
                                                const device::WorkerDevice& where) {
  LS_ASSIGN_OR_RETURN(const ReplicaPlans plans, DraftReplicaPlans(metagraph, job, nullptr, nullptr, nullptr, where));
  LS_ASSIGN_OR_RETURN(ReplicaForecast forecast, ForecastOf(metagraph, job, plans));
  KeepWhatFits(job, forecast);
  LS_RETURN_IF_ERROR(CheckMemoryLimit(forecast, metagraph, job, nullptr, where));
  return forecast;
}

absl::StatusOr<ReplicaForecast> ForecastWorker(const MetaGraph& metagraph, const JobSpec& job, const DataSize& data,
                                               const device::WorkerDevice& where) {
  LS_ASSIGN_OR_RETURN(const ReplicaPlans plans, DraftAll(metagraph, job, data.eval_samples, where, nullptr));
  LS_ASSIGN_OR_RETURN(ReplicaForecast forecast,
                      ForecastOf(metagraph, job, plans, {.process = ProcessBytes(), .data = data.held_bytes}));
  forecast.beside.process += std::min(forecast.state_bytes, kMostChunksBytes);
  KeepWhatFits(job, forecast);
  LS_RETURN_IF_ERROR(CheckMemoryLimit(forecast, metagraph, job, nullptr, where));
  return forecast;
}

}  // namespace lockstep::worker
