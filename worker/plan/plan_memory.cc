// The second half of PlanBuilder: where values lie.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/graph/training_graph.h"
#include "common/status/status_macros.h"
#include "worker/plan/arena.h"
#include "worker/plan/plan_builder.h"

namespace lockstep::worker {
namespace {

constexpr auto kAlignment = static_cast<int64_t>(device::Buffer::kAlignment);

int64_t RoundUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void PlanBuilder::FindLifetimes() {
  std::vector<bool> seen(state_->storages.size(), false);
  const auto touch = [&](int value, int step) {
    if (value < 0) return;
    const auto storage = static_cast<size_t>(state_->values[static_cast<size_t>(value)].storage);
    if (!seen[storage]) state_->storages[storage].first = step;
    seen[storage] = true;
    state_->storages[storage].last = step;
  };
  // Inputs are copied in before the first step.
  for (const GraphInput& input : graph_.inputs) touch(by_name_.at(input.name), 0);
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    for (const int value : state_->steps[i].inputs) touch(value, static_cast<int>(i));
    for (const int value : state_->steps[i].outputs) touch(value, static_cast<int>(i));
  }
}

void PlanBuilder::ShareInPlace() {
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    if (state_->steps[i].kernel != nullptr) ShareStep(state_->steps[i], static_cast<int>(i));
  }
}

void PlanBuilder::ShareStep(const PlanStep& step, int index) {
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o] < 0) continue;
    const int own = state_->values[static_cast<size_t>(step.outputs[o])].storage;
    const PlanStorage result = state_->storages[static_cast<size_t>(own)];
    if (result.home != Home::kArena || result.first != index) continue;
    for (const int input : step.inputs) {
      if (input < 0) continue;
      const int taken = state_->values[static_cast<size_t>(input)].storage;
      PlanStorage& source = state_->storages[static_cast<size_t>(taken)];
      if (source.home != Home::kArena || source.last != index || source.bytes != result.bytes) continue;
      bool legal = true;
      for (size_t other = 0; other < step.inputs.size(); ++other) {
        if (step.inputs[other] < 0) continue;
        if (state_->values[static_cast<size_t>(step.inputs[other])].storage != taken) continue;
        legal = legal && step.kernel->CanShare(static_cast<int>(other), static_cast<int>(o));
      }
      if (!legal) continue;
      source.last = result.last;
      for (PlanValue& value : state_->values) {
        if (value.storage == own) value.storage = taken;
      }
      // Nothing uses it any more: it takes no room.
      state_->storages[static_cast<size_t>(own)] = {.home = Home::kArena, .bytes = 0, .first = index, .last = index};
      break;
    }
  }
}

absl::Status PlanBuilder::PlaceGradients() {
  // In the order in which the steps finish them.
  std::vector<int> values;
  std::vector<int> done_at;
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    for (const int value : state_->steps[i].outputs) {
      if (value < 0 || StorageOf(value).home != Home::kGradient) continue;
      values.push_back(value);
      done_at.push_back(static_cast<int>(i));
    }
  }
  std::vector<int64_t> sizes;
  for (const int value : values) {
    const PlanValue& v = state_->values[static_cast<size_t>(value)];
    if (v.dtype != DType::kF32 && v.dtype != DType::kF64) {
      return absl::InvalidArgumentError(absl::StrCat("gradient '", v.name, "' has element type ", DTypeName(v.dtype),
                                                     "; trained parameters have to be F32"));
    }
    if (NumElements(v.shape) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", gradient_of_.at(v.name), "' of shape ",
                                                     ShapeString(v.shape),
                                                     " has no elements; remove it from what is trained"));
    }
    // The layout counts in floats.
    sizes.push_back(NumElements(v.shape) * DTypeSize(v.dtype) / DTypeSize(DType::kF32));
    state_->gradient_parameters.push_back(gradient_of_.at(v.name));
  }
  state_->gradient_layout.emplace(sizes, options_.bucket_bytes);
  const std::vector<Bucket>& buckets = state_->gradient_layout->buckets();
  for (size_t b = 0; b < buckets.size(); ++b) {
    const int last = done_at[static_cast<size_t>(buckets[b].last_tensor) - 1];
    for (size_t i = static_cast<size_t>(last); i < state_->steps.size(); ++i) {
      state_->steps[i].buckets_ready = static_cast<int>(b) + 1;
    }
  }
  const int64_t bytes = state_->gradient_layout->total_elements() * int64_t{sizeof(float)};
  offsets_.assign(state_->storages.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    offsets_[static_cast<size_t>(state_->values[static_cast<size_t>(values[i])].storage)] =
        state_->gradient_layout->tensors()[i].offset * int64_t{sizeof(float)};
  }
  state_->memory.gradients = bytes * (options_.accumulate_passes ? 2 : 1);
  return absl::OkStatus();
}

void PlanBuilder::PlaceRest() {
  std::vector<ArenaRequest> requests;
  std::vector<size_t> owners;
  for (size_t i = 0; i < state_->storages.size(); ++i) {
    const PlanStorage& storage = state_->storages[i];
    if (storage.home == Home::kArena && storage.bytes > 0) {
      requests.push_back({.bytes = storage.bytes, .first = storage.first, .last = storage.last});
      owners.push_back(i);
    } else if (storage.home == Home::kPersistent) {
      offsets_[i] = state_->memory.persistent;
      state_->memory.persistent += RoundUp(std::max<int64_t>(storage.bytes, 1));
    }
  }
  const ArenaLayout layout = PlaceInArena(requests, kAlignment);
  for (size_t i = 0; i < owners.size(); ++i) offsets_[owners[i]] = layout.offsets[i];
  state_->memory.arena = layout.bytes;
  for (const auto* steps : {&state_->refresh, &state_->steps}) {
    for (const PlanStep& step : *steps) {
      if (step.kernel == nullptr) continue;
      state_->memory.workspace =
          std::max(state_->memory.workspace, static_cast<int64_t>(step.kernel->workspace_bytes()));
    }
  }
}

absl::Status PlanBuilder::CheckLimit() const {
  const PlanMemory& memory = state_->memory;
  if (options_.memory_limit_bytes == 0 || memory.total() <= options_.memory_limit_bytes) return absl::OkStatus();
  const PlanStep* hungriest = nullptr;
  int64_t most = -1;
  for (const PlanStep& step : state_->steps) {
    int64_t bytes = 0;
    for (const int value : step.outputs) bytes += value < 0 ? 0 : state_->Bytes(value);
    if (bytes > most) hungriest = &step;
    most = std::max(most, bytes);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the ", options_.label, " plan needs ", memory.total(), " bytes (values ", memory.arena,
                   ", workspace ", memory.workspace, ", gradients ", memory.gradients, ", persistent ",
                   memory.persistent, "), the limit is ", options_.memory_limit_bytes,
                   "; the largest result is that of node '", hungriest == nullptr ? "" : hungriest->node, "' (", most,
                   " bytes). Use a smaller batch or more logical shards, or raise the limit."));
}

absl::Status PlanBuilder::Allocate() {
  const auto allocate = [&](int64_t bytes) { return device_->Allocate(static_cast<size_t>(bytes)); };
  LS_ASSIGN_OR_RETURN(state_->arena, allocate(state_->memory.arena));
  LS_ASSIGN_OR_RETURN(state_->workspace, allocate(state_->memory.workspace));
  LS_ASSIGN_OR_RETURN(state_->persistent, allocate(state_->memory.persistent));
  const int64_t gradient_bytes = state_->gradient_layout->total_elements() * int64_t{sizeof(float)};
  LS_ASSIGN_OR_RETURN(state_->gradients, allocate(gradient_bytes));
  if (options_.accumulate_passes) {
    LS_ASSIGN_OR_RETURN(state_->pass_gradients, allocate(gradient_bytes));
  }
  std::byte* gradient_base = (options_.accumulate_passes ? state_->pass_gradients : state_->gradients)->address();
  for (size_t i = 0; i < state_->storages.size(); ++i) {
    PlanStorage& storage = state_->storages[i];
    if (storage.home == Home::kArena) storage.address = state_->arena->address() + offsets_[i];
    if (storage.home == Home::kGradient) storage.address = gradient_base + offsets_[i];
    if (storage.home == Home::kPersistent) storage.address = state_->persistent->address() + offsets_[i];
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::Bind(PlanStep& step) {
  if (step.kernel == nullptr) return absl::OkStatus();
  device::KernelArguments arguments{.workspace = state_->workspace->address()};
  for (const int value : step.inputs) arguments.inputs.push_back(state_->Address(value));
  for (const int value : step.outputs) arguments.outputs.push_back(state_->Address(value));
  if (absl::Status status = step.kernel->Bind(arguments); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("node '", step.node, "': ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::BindAll() {
  for (const auto& [value, tensor] : constants_) {
    LS_RETURN_IF_ERROR(
        state_->stream->CopyToDevice(state_->Address(value), tensor->data(), static_cast<size_t>(tensor->byte_size())));
  }
  LS_RETURN_IF_ERROR(state_->stream->Synchronize());
  for (PlanStep& step : state_->refresh) LS_RETURN_IF_ERROR(Bind(step));
  for (PlanStep& step : state_->steps) LS_RETURN_IF_ERROR(Bind(step));
  for (const TensorSpec& input : state_->inputs) {
    const int value = by_name_.at(input.name);
    state_->input_copies.push_back({state_->Address(value), static_cast<size_t>(state_->Bytes(value))});
  }
  if (const auto random = by_name_.find(kRandomInput); random != by_name_.end()) {
    state_->random = state_->Address(random->second);
    LS_ASSIGN_OR_RETURN(state_->random_taken, device_->NewEvent());
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::MakeAccumulation() {
  if (!options_.accumulate_passes) return absl::OkStatus();
  for (const Bucket& bucket : state_->gradient_layout->buckets()) {
    const Node node{.name = "sum of passes", .op = OpType::kAdd, .inputs = {"a", "b"}, .outputs = {"a"}};
    const device::Operand flat{.shape = {bucket.range.size}};
    LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel,
                        device_->MakeKernel({.node = &node, .inputs = {flat, flat}, .outputs = {flat}}));
    if (!kernel->CanShare(0, 0)) {
      return absl::InternalError("the device cannot add in place, which the sum over passes needs");
    }
    const auto offset = static_cast<size_t>(bucket.range.offset) * sizeof(float);
    std::byte* total = state_->gradients->address() + offset;
    LS_RETURN_IF_ERROR(kernel->Bind({.inputs = {total, state_->pass_gradients->address() + offset},
                                     .outputs = {total},
                                     .workspace = state_->workspace->address()}));
    state_->add.push_back(std::move(kernel));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
