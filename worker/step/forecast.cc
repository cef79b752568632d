#include "worker/step/forecast.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"
#include "worker/data/batch_reader.h"
#include "worker/step/gradient_exchange.h"
#include "worker/step/host_state.h"

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

// What the job needs; nullopt when the model cannot be computed so.
std::optional<int64_t> Need(const MetaGraph& metagraph, const JobSpec& job, Pulse* pulse) {
  const absl::StatusOr<ReplicaPlans> plans = DraftReplicaPlans(metagraph, job, nullptr, pulse, nullptr);
  if (!plans.ok()) return std::nullopt;
  const absl::StatusOr<ReplicaForecast> forecast = ForecastOf(metagraph, job, *plans);
  if (!forecast.ok()) return std::nullopt;
  return forecast->total();
}

std::optional<int64_t> NeedWith(int64_t micro_batch, MetaGraph metagraph, JobSpec job, Pulse* pulse) {
  metagraph.pass_batch = micro_batch;
  job.mutable_train()->set_micro_batch(micro_batch);
  return Need(metagraph, job, pulse);
}

// The setting that computes blocks again, where it alone is enough.
std::string RecomputeAdvice(const MetaGraph& metagraph, JobSpec job, Pulse* pulse) {
  if (job.train().recompute() == job::Train::RECOMPUTE_BLOCKS) return "";
  job.mutable_train()->set_recompute(job::Train::RECOMPUTE_BLOCKS);
  const std::optional<int64_t> need = Need(metagraph, job, pulse);
  if (!need.has_value() || *need > job.resources().cpu_memory().bytes()) return "";
  return absl::StrCat("`train.recompute: blocks` fits (", *need, " bytes). ");
}

// What would make a job fit that does not. Less in a pass needs less: the largest that fits is found by halving.
std::string Advice(const MetaGraph& metagraph, const JobSpec& job, Pulse* pulse) {
  const int64_t limit = job.resources().cpu_memory().bytes();
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
    const std::optional<int64_t> need = NeedWith(smaller[middle], metagraph, job, pulse);
    if (need.has_value() && *need <= limit) {
      fits = absl::StrCat("The largest micro-batch that fits: `train.micro_batch: ", smaller[middle], "` (", *need,
                          " bytes). ");
      begin = middle + 1;
    } else {
      if (middle == 0 && need.has_value()) {
        least = absl::StrCat("Even `train.micro_batch: ", smaller[middle], "` needs ", *need, ". ");
      }
      end = middle;
    }
  }
  return absl::StrCat(fits.empty() ? least : fits, RecomputeAdvice(metagraph, job, pulse), "Or raise the limit.");
}

}  // namespace

absl::StatusOr<ReplicaForecast> ForecastOf(const MetaGraph& metagraph, const JobSpec& job, const ReplicaPlans& plans) {
  ReplicaForecast forecast;
  LS_ASSIGN_OR_RETURN(forecast.state_bytes, HostState::BytesOf(MakeStateLayout(metagraph)));
  forecast.snapshot_bytes = kSnapshotBuffers * forecast.state_bytes;
  const int64_t shards = job.train().logical_shards();
  forecast.exchange_bytes = GradientExchange::BytesOf(plans.training_plan->gradient_layout(), static_cast<int>(shards),
                                                      metagraph.update.reduction);
  const int64_t read_ahead = BatchReader::BatchesAlive(BatchReader::kReadAhead);
  forecast.batch_bytes = read_ahead * (job.train().global_batch_size() / shards) * SampleBytes(metagraph);
  if (plans.eval_plan != nullptr) {
    forecast.batch_bytes += plans.eval_batch * (SampleBytes(metagraph) + int64_t{sizeof(float)});
  }
  forecast.training = plans.training_plan->memory();
  if (plans.eval_plan != nullptr) forecast.evaluation = plans.eval_plan->memory();
  if (plans.text_plan != nullptr) forecast.text = plans.text_plan->memory();
  forecast.peak = plans.training_plan->Peak();
  forecast.nodes = plans.training_plan->Describe();
  return forecast;
}

absl::Status CheckMemoryLimit(const ReplicaForecast& forecast, const MetaGraph& metagraph, const JobSpec& job,
                              Pulse* pulse) {
  const int64_t limit = job.resources().cpu_memory().bytes();
  if (!job.resources().has_cpu_memory() || forecast.total() <= limit) return absl::OkStatus();
  std::string largest;
  for (size_t i = 0; i < std::min(forecast.peak.parts.size(), kNamedParts); ++i) {
    const PlanPeak::Part& part = forecast.peak.parts[i];
    absl::StrAppend(&largest, i == 0 ? "" : ", ", "'", part.name, "' (", part.bytes, ")");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("a worker needs ", forecast.total(), " bytes (state ", forecast.state_bytes, ", snapshots of it ",
                   forecast.snapshot_bytes, ", sums of gradients ", forecast.exchange_bytes, ", batches ",
                   forecast.batch_bytes, ", training plan ", forecast.training.total(), ", evaluation plan ",
                   forecast.evaluation.total() + forecast.text.total(), "), resources.cpu_memory allows ", limit,
                   ". Largest of the training plan's values: ", largest, ". ", Advice(metagraph, job, pulse)));
}

absl::StatusOr<ReplicaForecast> ForecastReplica(const MetaGraph& metagraph, const JobSpec& job) {
  LS_ASSIGN_OR_RETURN(const ReplicaPlans plans, DraftReplicaPlans(metagraph, job, nullptr, nullptr, nullptr));
  LS_ASSIGN_OR_RETURN(ReplicaForecast forecast, ForecastOf(metagraph, job, plans));
  LS_RETURN_IF_ERROR(CheckMemoryLimit(forecast, metagraph, job, nullptr));
  return forecast;
}

}  // namespace lockstep::worker
