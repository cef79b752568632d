#include "worker/plan/plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/plan/plan_state.h"

namespace lockstep::worker {
namespace {

constexpr size_t kDigestPieceBytes = size_t{1} << 20;

}  // namespace

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::~Plan() {
  // Queued work uses memory that is about to go; its failure has nobody left to report to.
  if (state_->stream != nullptr) (void)state_->stream->Synchronize();
}

const std::vector<TensorSpec>& Plan::inputs() const { return state_->inputs; }
const std::vector<TensorSpec>& Plan::outputs() const { return state_->outputs; }

absl::StatusOr<std::unique_ptr<Plan>> Plan::Make(device::Device* device, const Graph& graph,
                                                 const std::map<std::string, std::byte*>& variables,
                                                 const PlanOptions& options) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, Draft(device, graph, options));
  LS_RETURN_IF_ERROR(plan->Bind(variables));
  return plan;
}

int Plan::FindOutput(absl::string_view name) const {
  for (size_t i = 0; i < state_->outputs.size(); ++i) {
    if (state_->outputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const GradientLayout& Plan::gradient_layout() const { return *state_->gradient_layout; }
const std::vector<std::string>& Plan::gradient_parameters() const { return state_->gradient_parameters; }
std::byte* Plan::bucket_address(int bucket) const {
  return state_->accumulate_passes ? state_->BucketOfSum(bucket) : state_->BucketOfPass(bucket);
}
bool Plan::keeps_gradients() const {
  return state_->gradient_memory != GradientMemory::kUntilRead || state_->accumulate_passes;
}
device::Stream& Plan::stream() { return *state_->stream; }
absl::Status Plan::WaitForInputs() { return state_->inputs_taken->Wait(); }
device::Event& Plan::inputs_taken() { return *state_->inputs_taken; }
absl::Status Plan::Synchronize() { return state_->stream->Synchronize(); }
Pulse* Plan::pulse() const { return state_->pulse; }
uint64_t Plan::nodes_executed() const { return state_->nodes_executed.load(std::memory_order_relaxed); }
void Plan::Cancel(bool cancel) { state_->cancelled.store(cancel, std::memory_order_relaxed); }
const PlanMemory& Plan::memory() const { return state_->memory; }

PlanPeak Plan::Peak() const {
  const auto in_arena = [](const PlanStorage& storage) {
    return storage.home == PlanStorage::Home::kArena && storage.bytes > 0;
  };
  std::vector<int64_t> alive(state_->steps.size() + 1, 0);
  for (const PlanStorage& storage : state_->storages) {
    if (!in_arena(storage)) continue;
    for (int step = std::max(storage.first, 0); step <= storage.last; ++step) {
      alive[static_cast<size_t>(step)] += storage.bytes;
    }
  }
  const auto at = static_cast<int>(std::max_element(alive.begin(), alive.end()) - alive.begin());
  if (at >= static_cast<int>(state_->steps.size())) return {};
  // Values may share a storage: the one that was written last counts.
  std::vector<std::string> names(state_->storages.size());
  const auto name = [&](int value) {
    if (value < 0) return;
    names[static_cast<size_t>(state_->values[static_cast<size_t>(value)].storage)] =
        state_->values[static_cast<size_t>(value)].name;
  };
  for (const int value : state_->input_values) name(value);
  for (int i = 0; i <= at; ++i) {
    for (const int value : state_->steps[static_cast<size_t>(i)].outputs) name(value);
  }
  for (size_t b = 0; b < state_->bucket_storages.size(); ++b) {
    const Bucket& bucket = state_->gradient_layout->buckets()[b];
    std::string& own = names[static_cast<size_t>(state_->bucket_storages[b])];
    own = absl::StrCat("gradient of ", state_->gradient_parameters[static_cast<size_t>(bucket.first_tensor)]);
    const int more = bucket.last_tensor - bucket.first_tensor - 1;
    if (more > 0) absl::StrAppend(&own, " and ", more, " more");
  }
  const PlanStep& step = state_->steps[static_cast<size_t>(at)];
  if (step.workspace >= 0) names[static_cast<size_t>(step.workspace)] = absl::StrCat("scratch of ", step.node);
  PlanPeak peak{.node = step.node, .parts = {}, .lower_bound = alive[static_cast<size_t>(at)]};
  for (size_t s = 0; s < state_->storages.size(); ++s) {
    const PlanStorage& storage = state_->storages[s];
    if (in_arena(storage) && storage.first <= at && at <= storage.last) peak.parts.push_back({names[s], storage.bytes});
  }
  std::stable_sort(peak.parts.begin(), peak.parts.end(),
                   [](const PlanPeak::Part& a, const PlanPeak::Part& b) { return a.bytes > b.bytes; });
  return peak;
}

absl::Duration Plan::longest_node() const { return state_->longest_node; }
const KernelChoices& Plan::choices() const { return state_->choices; }

std::vector<PlannedStep> Plan::Describe() const {
  std::vector<PlannedStep> steps;
  for (const PlanStep& step : state_->refresh) {
    steps.push_back(step.description);
    steps.back().text = absl::StrCat("once per step: ", steps.back().text);
  }
  for (const PlanStep& step : state_->steps) steps.push_back(step.description);
  return steps;
}

int64_t Plan::State::Bytes(int value) const {
  const PlanValue& v = values[static_cast<size_t>(value)];
  return v.layout.row_major() ? NumElements(v.shape) * DTypeSize(v.dtype) : static_cast<int64_t>(v.layout.bytes);
}

absl::Status Plan::State::RunStep(const PlanStep& step) {
  nodes_executed.fetch_add(1, std::memory_order_relaxed);
  AdvancePulse(pulse);
  return LaunchStep(step);
}

absl::Status Plan::State::LaunchStep(const PlanStep& step) {
  const NowDoing node("node '", step.node, "'");
  if (step.kernel != nullptr) return step.kernel->Launch(*stream);
  return stream->CopyOnDevice(Address(step.outputs[0]), Address(step.inputs[0]),
                              static_cast<size_t>(Bytes(step.outputs[0])));
}

std::byte* Plan::State::BucketOfSum(int bucket) const {
  const FlatRange range = gradient_layout->buckets()[static_cast<size_t>(bucket)].range;
  return gradients->address() + static_cast<size_t>(range.offset) * sizeof(float);
}

absl::Status Plan::State::Accumulate(int bucket, int64_t pass) {
  if (!accumulate_passes) return absl::OkStatus();
  if (pass > 0) return add[static_cast<size_t>(bucket)]->Launch(*stream);
  const FlatRange range = gradient_layout->buckets()[static_cast<size_t>(bucket)].range;
  return stream->CopyOnDevice(BucketOfSum(bucket), BucketOfPass(bucket),
                              static_cast<size_t>(range.size) * sizeof(float));
}

absl::Status Plan::State::Announce(const PlanStep& step, const PassKey& key, BucketReady on_bucket, int& ready) {
  for (; ready < step.buckets_ready; ++ready) {
    LS_RETURN_IF_ERROR(Accumulate(ready, key.pass));
    LS_RETURN_IF_ERROR(on_bucket(ready));
  }
  return absl::OkStatus();
}

absl::Status Plan::State::CheckInputs(absl::Span<const InputBytes> from) const {
  if (from.size() != inputs.size()) {
    return absl::InternalError(absl::StrCat("a pass takes ", inputs.size(), " inputs and was given ", from.size()));
  }
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].size() == input_copies[i].bytes && (from[i].data() != nullptr || from[i].empty())) continue;
    return absl::InternalError(absl::StrCat("input '", inputs[i].name, "' takes ", input_copies[i].bytes,
                                            " bytes of a pass and was given ", from[i].size()));
  }
  return absl::OkStatus();
}

absl::Status Plan::State::CopyInputs(absl::Span<const InputBytes> from, InputsIn memory, const PassKey& key) {
  LS_RETURN_IF_ERROR(CheckInputs(from));
  if (poison) LS_RETURN_IF_ERROR(PoisonMemory(*arena));
  for (size_t i = 0; i < from.size(); ++i) {
    const PlanInputCopy& to = input_copies[i];
    LS_RETURN_IF_ERROR(memory == InputsIn::kHostMemory ? stream->CopyToDevice(to.address, from[i].data(), to.bytes)
                                                       : stream->CopyOnDevice(to.address, from[i].data(), to.bytes));
  }
  if (random == nullptr) return stream->Record(*inputs_taken);
  // The staging memory may still be on its way for the pass before.
  LS_RETURN_IF_ERROR(inputs_taken->Wait());
  const int64_t numbers[] = {static_cast<int64_t>(key.seed), key.step, key.logical_shard, key.pass};
  static_assert(sizeof(numbers) == kRandomBytes);
  std::memcpy(random_staging->address(), numbers, kRandomBytes);
  LS_RETURN_IF_ERROR(stream->CopyToDevice(random, random_staging->address(), kRandomBytes));
  return stream->Record(*inputs_taken);
}

absl::Status Plan::RefreshVariables() {
  for (const PlanStep& step : state_->refresh) LS_RETURN_IF_ERROR(state_->RunStep(step));
  return absl::OkStatus();
}

void Plan::State::CutSegments() {
  int ready = 0;
  size_t first = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].buckets_ready == ready && i + 1 < steps.size()) continue;
    ready = steps[i].buckets_ready;
    segments.push_back({.first = first, .last = i + 1});
    first = i + 1;
  }
}

absl::StatusOr<std::unique_ptr<device::Recording>> Plan::State::Record(const PlanSegment& segment) {
  LS_RETURN_IF_ERROR(stream->BeginRecording());
  absl::Status recorded;
  for (size_t i = segment.first; i < segment.last && recorded.ok(); ++i) recorded = LaunchStep(steps[i]);
  absl::StatusOr<std::unique_ptr<device::Recording>> recording = stream->EndRecording();
  LS_RETURN_IF_ERROR(recorded);
  return recording;
}

absl::Status Plan::State::RunSegment(PlanSegment& segment) {
  if (segment.recording == nullptr && !segment.stepwise) {
    absl::StatusOr<std::unique_ptr<device::Recording>> recording = Record(segment);
    if (recording.ok()) {
      segment.recording = *std::move(recording);
    } else {
      // A device that has failed for good says so again below.
      LS_LOG(warn, "nodes '", steps[segment.first].node, "' to '", steps[segment.last - 1].node,
             "' are queued one by one: ", recording.status().message());
      segment.stepwise = true;
    }
  }
  if (segment.stepwise) {
    for (size_t i = segment.first; i < segment.last; ++i) LS_RETURN_IF_ERROR(RunStep(steps[i]));
    return absl::OkStatus();
  }
  const NowDoing nodes("nodes '", steps[segment.first].node, "' to '", steps[segment.last - 1].node, "'");
  nodes_executed.fetch_add(segment.last - segment.first, std::memory_order_relaxed);
  AdvancePulse(pulse);
  return stream->Replay(*segment.recording);
}

absl::Status Plan::State::QueuePass(absl::Span<const InputBytes> from, InputsIn memory, const PassKey& key,
                                    BucketReady on_bucket) {
  LS_RETURN_IF_ERROR(CopyInputs(from, memory, key));
  const bool replays = ran_once && stream->can_record();
  if (replays && segments.empty()) CutSegments();
  int ready = 0;
  const size_t count = replays ? segments.size() : steps.size();
  for (size_t i = 0; i < count; ++i) {
    const PlanStep& last = steps[replays ? segments[i].last - 1 : i];
    if (cancelled.load(std::memory_order_relaxed)) {
      return absl::CancelledError(absl::StrCat("the pass was cancelled before node '", last.node, "'"));
    }
    LS_RETURN_IF_ERROR(replays ? RunSegment(segments[i]) : RunStep(last));
    LS_RETURN_IF_ERROR(Announce(last, key, on_bucket, ready));
  }
  ran_once = true;
  return absl::OkStatus();
}

absl::Status Plan::RunPass(absl::Span<const InputBytes> inputs, const PassKey& key, BucketReady on_bucket) {
  absl::Status queued = state_->QueuePass(inputs, State::InputsIn::kHostMemory, key, on_bucket);
  // The caller's inputs may go now; a failure of the device is that of the pass, or shows with the next.
  if (!queued.ok()) (void)state_->stream->Synchronize();
  return queued;
}

absl::Status Plan::RunPassOnDevice(absl::Span<const InputBytes> inputs, const PassKey& key, BucketReady on_bucket) {
  absl::Status queued = state_->QueuePass(inputs, State::InputsIn::kDeviceMemory, key, on_bucket);
  if (!queued.ok()) (void)state_->stream->Synchronize();
  return queued;
}

absl::Status Plan::RunPass(absl::Span<const InputBytes> inputs, const PassKey& key) {
  return RunPass(inputs, key, [](int) { return absl::OkStatus(); });
}

absl::StatusOr<std::string> Plan::State::DigestOf(int value) {
  // Piece by piece: a copy of the whole would be a peak of memory of its own.
  std::vector<std::byte> piece(std::min(static_cast<size_t>(Bytes(value)), kDigestPieceBytes));
  Sha256 hash;
  for (size_t at = 0; at < static_cast<size_t>(Bytes(value)); at += piece.size()) {
    const size_t bytes = std::min(piece.size(), static_cast<size_t>(Bytes(value)) - at);
    LS_RETURN_IF_ERROR(stream->CopyToHost(piece.data(), Address(value) + at, bytes));
    LS_RETURN_IF_ERROR(stream->Synchronize());
    hash.Update(absl::string_view(reinterpret_cast<const char*>(piece.data()), bytes));
  }
  return ToHex(hash.Finish());
}

absl::StatusOr<std::vector<NodeDigest>> Plan::RunPassWithDigests(absl::Span<const InputBytes> inputs,
                                                                 const PassKey& key) {
  return RunPassWithDigests(inputs, key, [](int) { return absl::OkStatus(); });
}

absl::StatusOr<std::vector<NodeDigest>> Plan::RunPassWithDigests(absl::Span<const InputBytes> inputs,
                                                                 const PassKey& key, BucketReady on_bucket) {
  State& state = *state_;
  LS_RETURN_IF_ERROR(state.CopyInputs(inputs, State::InputsIn::kHostMemory, key));
  std::vector<NodeDigest> digests;
  int ready = 0;
  state.longest_node = absl::ZeroDuration();
  for (const PlanStep& step : state.steps) {
    const auto start = std::chrono::steady_clock::now();
    LS_RETURN_IF_ERROR(state.RunStep(step));
    LS_RETURN_IF_ERROR(state.stream->Synchronize());
    state.longest_node = std::max(state.longest_node, absl::FromChrono(std::chrono::steady_clock::now() - start));
    for (size_t i = 0; i < step.outputs.size() && !step.again && !step.of_variable; ++i) {
      if (step.outputs[i] < 0) continue;
      LS_ASSIGN_OR_RETURN(std::string digest, state.DigestOf(step.outputs[i]));
      digests.push_back({absl::StrCat(step.node, ":", i), std::move(digest)});
    }
    LS_RETURN_IF_ERROR(state.Announce(step, key, on_bucket, ready));
  }
  LS_RETURN_IF_ERROR(state.stream->Synchronize());
  state.ran_once = true;
  return digests;
}

const std::byte* Plan::output_address(int output) const {
  LS_CHECK(output >= 0 && output < static_cast<int>(state_->outputs.size()), "an output of this plan");
  return state_->Address(state_->output_values[static_cast<size_t>(output)]);
}

absl::Status Plan::ReadOutputs(absl::Span<const OutputRead> reads) {
  absl::Status queued;
  for (const OutputRead& read : reads) {
    const int value = state_->output_values[static_cast<size_t>(read.output)];
    LS_CHECK(static_cast<int64_t>(read.to.size()) == state_->Bytes(value), "an output is read whole");
    queued.Update(state_->stream->CopyToHost(read.to.data(), state_->Address(value), read.to.size()));
  }
  const absl::Status done = state_->stream->Synchronize();
  return queued.ok() ? done : queued;
}

}  // namespace lockstep::worker
